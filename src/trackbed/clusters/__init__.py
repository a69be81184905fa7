"""Engines that start supervisors on nodes; accelerators; nodes."""
