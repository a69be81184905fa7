"""What acts by itself on observed state."""
