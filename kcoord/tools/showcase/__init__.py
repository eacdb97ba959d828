"""`make showcase`: living groups of every state, protocol and verdict, to look at the dashboard with."""
