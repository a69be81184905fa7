"""What names may look like, how long secrets live, what is kept of them."""

import hashlib
import hmac
import re

from blake3 import blake3

from trackbed.base.errors import BadInput

DEFAULT_SPACE = "default"
DEFAULT_PROJECT = "demo"
SESSION_S = 30 * 86400.0
LOGIN_LINK_S = 15 * 60.0
TOUCH_S = 600.0  # how coarse `last_used_us` is

# One word: letters and digits of any script, then also . _ - ; never what separates references (/ # @ :).
_NAME = re.compile(r"[^\W_][\w.\-]{0,99}")


def checked_name(name: str, *, what: str) -> str:
    """Return the name of a person, space or project if it is one word.

    Raises:
        BadInput: `access_name_bad`.
    """
    if not _NAME.fullmatch(name):
        raise BadInput("access_name_bad", what=what, name=name[:120])
    return name


def digest_of(secret: str) -> str:
    """Return what the database keeps of a secret. Secrets are 200 random bits, so a fast hash is enough."""
    return blake3(secret.encode()).hexdigest()


def csrf_of(session_secret: str) -> str:
    """Return the token that a page must send with unsafe requests of this session; it cannot be turned back."""
    return hmac.new(session_secret.encode(), b"trackbed csrf 1", hashlib.sha256).hexdigest()


def is_expired(expires_us: int, now_us: int) -> bool:
    """0 means never."""
    return 0 < expires_us <= now_us
