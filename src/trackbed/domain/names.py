"""Names of things that have numbered versions (datasets, models), and references to one version."""

import re
import unicodedata
from dataclasses import dataclass

# One word: letters and digits of any script, then also . _ -; never what separates references (/ # @ :).
_NAME = re.compile(r"[^\W_][\w.\-]{0,99}")
_DIGEST = re.compile(r"b3:[0-9a-f]{8,64}")
_NUMBER = re.compile(r"[1-9][0-9]{0,17}")
LATEST = "latest"


@dataclass(frozen=True)
class Ref:
    """`[space/]name[@which]`; `which` is a number, `latest`, `b3:` with at least 8 digits, or a label of the name."""

    name: str
    which: str = LATEST
    space: str = ""

    @property
    def number(self) -> int:
        """The version number, 0 where it is not asked by number."""
        return int(self.which) if _NUMBER.fullmatch(self.which) else 0


def name_of(text: str) -> str | None:
    """Return a name in composed Unicode form, None where it cannot be one."""
    composed = unicodedata.normalize("NFC", text)
    return composed if _NAME.fullmatch(composed) else None


def label_of(text: str) -> str | None:
    """Return a label that cannot be taken for a number or for `latest`, None where it cannot be one."""
    composed = name_of(text)
    return None if composed is None or composed == LATEST or composed.isdigit() else composed


def parse_ref(text: str, *, labels: bool) -> Ref | None:
    """Read a reference; None where it cannot be one. `labels` says whether versions of this kind have labels."""
    name, at, which = text.partition("@")
    space, slash, bare = name.rpartition("/")
    bare, which = unicodedata.normalize("NFC", bare), unicodedata.normalize("NFC", which) if at else LATEST
    known = which == LATEST or _NUMBER.fullmatch(which) or _DIGEST.fullmatch(which) or (labels and label_of(which))
    if not known or not _NAME.fullmatch(bare) or (slash and not _NAME.fullmatch(space)):
        return None
    return Ref(bare, which, space)
