"""The model registry: immutable versions that know where they came from, and aliases that move.

rules (pure) ← sql ← service
"""
