"""How parameters move: the learning rate by step (`schedule`, no torch) and AdamW with decay on matrices only (`adamw`)."""
