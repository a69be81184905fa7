"""The PyTorch tower with its recipes; knows none of its neighbours."""
