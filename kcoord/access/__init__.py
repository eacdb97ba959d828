"""Access control: tokens and the rights of their holders."""
