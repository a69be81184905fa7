"""Open work that touches the same things."""

from typing import Literal

import msgspec


class OpenWork(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """A branch as its newest run captured it, or a review that waits."""

    owner: str
    branch: str = ""
    repository: str = ""
    run: str = ""  # ref
    review: str = ""
    time_us: int = 0


class Conflict(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Two that touch one thing. `lines`: the same lines of it, so a merge will stop."""

    kind: Literal["path", "template", "alias", "quota"]
    subject: str
    works: list[OpenWork]
    lines: bool = False
