"""What runs on a laptop and inside a training process."""
