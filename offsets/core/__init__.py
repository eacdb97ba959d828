"""The rules of committed offsets. Pure, like `groups.core`: standard library, error registry and `kcoord.resets`."""
