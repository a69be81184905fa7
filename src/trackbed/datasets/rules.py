"""Names of datasets and references to their versions. Pure."""

import re
import unicodedata
from dataclasses import dataclass

from trackbed.base.errors import BadInput

# One word: letters and digits of any script, then also . _ -; never what separates references (/ # @ :).
_NAME = re.compile(r"[^\W_][\w.\-]{0,99}")
_DIGEST = re.compile(r"b3:[0-9a-f]{8,64}")
_NUMBER = re.compile(r"[1-9][0-9]{0,17}")


@dataclass(frozen=True)
class Ref:
    """`[space/]name[@which]`; `which` is a number, `latest`, or `b3:` with at least 8 digits."""

    name: str
    which: str = "latest"
    space: str = ""

    @property
    def number(self) -> int:
        """The version number, 0 where it is not asked by number."""
        return int(self.which) if _NUMBER.fullmatch(self.which) else 0


def checked_name(name: str) -> str:
    """Return the name of a dataset in composed Unicode form.

    Raises:
        BadInput: `dataset_name_bad`.
    """
    composed = unicodedata.normalize("NFC", name)
    if not _NAME.fullmatch(composed):
        raise BadInput("dataset_name_bad", name=name[:120])
    return composed


def parse_ref(ref: str) -> Ref:
    """Read a reference.

    Raises:
        BadInput: `dataset_ref_bad`.
    """
    name, at, which = ref.partition("@")
    space, _, bare = name.rpartition("/")
    bare = unicodedata.normalize("NFC", bare)
    which = which if at else "latest"
    known = which == "latest" or _NUMBER.fullmatch(which) or _DIGEST.fullmatch(which)
    if not _NAME.fullmatch(bare) or not known or ("/" in name and not _NAME.fullmatch(space)):
        raise BadInput("dataset_ref_bad", ref=ref[:200])
    return Ref(bare, which, space)
