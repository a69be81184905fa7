"""Datasets: names with immutable, gap-free versions, each pinned to the digest of a tree.

manifest (laptop) | rules (pure) ← sql ← service
"""
