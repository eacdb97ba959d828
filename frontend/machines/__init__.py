"""The state machines of groups: their transitions with causes, and how they are drawn."""
