"""`make showcase`: living groups of every state, both protocols and every verdict, to look at the dashboard with."""
