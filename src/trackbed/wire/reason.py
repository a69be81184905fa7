"""Why something is as it is."""

from typing import Any

import msgspec


class Reason(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A code with a sentence in the catalogues (`reason.<code>`), and the values."""

    code: str
    params: dict[str, Any] = {}
