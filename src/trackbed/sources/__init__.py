"""What a run was made from: code trees and environments, each pinned by digest.

capture (laptop) ← git, secrets | environment, locking ← uv, locks (laptop) | packs (builder, node) | compare, surroundings
sql, packs_sql, names_sql ← service (server)
"""
