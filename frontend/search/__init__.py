"""Find anything: one search over groups, members, topics, plans, tokens, and what can be done."""
