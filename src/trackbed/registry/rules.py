"""Names of models and aliases, and references to versions. Pure."""

import re
import unicodedata
from dataclasses import dataclass

from trackbed.base.errors import BadInput

_NAME = re.compile(r"[^\W_][\w.\-]{0,99}")
_DIGEST = re.compile(r"b3:[0-9a-f]{8,64}")
_NUMBER = re.compile(r"[1-9][0-9]{0,17}")


@dataclass(frozen=True)
class Ref:
    """`[space/]name[@which]`; `which` is a number, `latest`, an alias, or `b3:` with at least 8 digits."""

    name: str
    which: str = "latest"
    space: str = ""

    @property
    def number(self) -> int:
        return int(self.which) if _NUMBER.fullmatch(self.which) else 0


def checked_name(name: str) -> str:
    """Return the name of a model in composed Unicode form, or raise BadInput (`model_name_bad`)."""
    composed = unicodedata.normalize("NFC", name)
    if not _NAME.fullmatch(composed):
        raise BadInput("model_name_bad", name=name[:120])
    return composed


def checked_alias(alias: str) -> str:
    """Return an alias that cannot be taken for a number or for `latest`, or raise BadInput (`model_alias_bad`)."""
    composed = unicodedata.normalize("NFC", alias)
    if not _NAME.fullmatch(composed) or composed == "latest" or composed.isdigit():
        raise BadInput("model_alias_bad", alias=alias[:120])
    return composed


def parse_ref(ref: str) -> Ref:
    """Read a reference, or raise BadInput (`model_ref_bad`)."""
    name, at, which = ref.partition("@")
    space, _, bare = name.rpartition("/")
    bare, which = unicodedata.normalize("NFC", bare), unicodedata.normalize("NFC", which) if at else "latest"
    known = _DIGEST.fullmatch(which) or _NUMBER.fullmatch(which) or (_NAME.fullmatch(which) and not which.isdigit())
    if not _NAME.fullmatch(bare) or not known or ("/" in name and not _NAME.fullmatch(space)):
        raise BadInput("model_ref_bad", ref=ref[:200])
    return Ref(bare, which, space)
