"""Randomness of the process: ids and secrets. The pure floors take both as arguments."""

import secrets

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford base32: no i, l, o, u


def new_id(prefix: str) -> str:
    """Return `prefix_` + 16 random base32 characters (80 bits).

    Random, not time-ordered, so that a prefix of six characters tells runs apart.
    """
    return f"{prefix}_" + "".join(secrets.choice(_ALPHABET) for _ in range(16))


def new_secret(prefix: str) -> str:
    """Return a bearer secret `prefix_` + 40 random base32 characters (200 bits)."""
    return f"{prefix}_" + "".join(secrets.choice(_ALPHABET) for _ in range(40))
