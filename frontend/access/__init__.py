"""Who may what: the rules of people, groups of people and tokens, in words."""
