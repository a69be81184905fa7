"""State that outlives the process: each rank's part staged, then the whole checkpoint under its name (`save`); and back,
into the same layout bit for bit or into another number of ranks (`restore`). Format: `docs/formats/checkpoint.md`.
"""
