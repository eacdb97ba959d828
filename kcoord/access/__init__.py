"""Who may do what: tokens and the rights of their holders."""
