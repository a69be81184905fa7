"""Arithmetic on tensors, without parameters or processes: norms, rotations, losses, and how exact they have to be."""
