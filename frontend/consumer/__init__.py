"""What the page of a group shows only of groups of the consumer protocol (KIP-848)."""
