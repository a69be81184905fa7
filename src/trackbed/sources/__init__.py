"""What a run was made from: code trees and environments, each pinned by digest.

capture (laptop) ← git, secrets | environment (laptop) | sql ← service (server)
"""
