"""What the page of a group shows only for groups of the consumer protocol (KIP-848)."""
