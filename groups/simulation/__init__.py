"""What would move if a group had other members, partitions, or another assignor. Nothing is changed by it."""
