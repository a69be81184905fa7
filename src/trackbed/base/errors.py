"""Every error of Trackbed.

    TrackbedError            code, params           HTTP  exit
    ├── BadInput             what was given is wrong  400   2   (carries all faults at once)
    ├── Unauthenticated      no or a dead token       401   5
    ├── Denied               the role does not allow  403   5
    ├── NotFound             no such thing in scope   404   3
    ├── Conflict             stale write, wrong state 409   4
    ├── TooLarge             over a stated limit      413   2
    ├── NotYet               in the schema, not built 422   2
    ├── Damaged              bytes do not match       500   8
    ├── Internal             our own fault            500  70
    ├── Unavailable          try again later          503   6
    └── StorageFull          no space left            507   7

An error is a family (the class), a stable code (which sentence) and params (the values). The sentence itself, what
happened and then the way out, lives in the catalogues `base/messages/{en,zh}/*.json`; codes cross the wire, prose does not.
"""

from typing import Any, ClassVar, NamedTuple

from trackbed.base import messages


class Fault(NamedTuple):
    """One wrong field: its stable code, where it stands, and the values for the sentence."""

    code: str
    field: str = ""
    line: int | None = None
    params: dict[str, Any] = {}

    def text(self, lang: str = "en") -> str:
        line = "" if not self.line else f"第 {self.line} 行" if lang == "zh" else f"line {self.line}"
        where = f"{self.field} ({line})" if self.field and line else self.field or line
        return (f"{where}: " if where else "") + messages.render(self.code, self.params, lang)


class TrackbedError(Exception):
    """Base of all. `code` names the sentence in the catalogues, `params` fill it."""

    http_status: ClassVar[int] = 500
    exit_status: ClassVar[int] = 70

    def __init__(self, code: str, /, *, faults: list[Fault] | None = None, **params: Any) -> None:
        super().__init__(code)
        self.code = code
        self.params = params
        self.faults = faults or []

    def text(self, lang: str = "en") -> str:
        """What happened, then the way out; one line a fault."""
        lines = [messages.render(self.code, self.params, lang)]
        lines += [f"  {fault.text(lang)}" for fault in self.faults]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text("en")


class BadInput(TrackbedError):
    http_status, exit_status = 400, 2


class Unauthenticated(TrackbedError):
    http_status, exit_status = 401, 5


class Denied(TrackbedError):
    http_status, exit_status = 403, 5


class NotFound(TrackbedError):
    http_status, exit_status = 404, 3


class Conflict(TrackbedError):
    http_status, exit_status = 409, 4


class TooLarge(TrackbedError):
    http_status, exit_status = 413, 2


class NotYet(TrackbedError):
    http_status, exit_status = 422, 2


class Damaged(TrackbedError):
    http_status, exit_status = 500, 8


class Internal(TrackbedError):
    http_status, exit_status = 500, 70


class Unavailable(TrackbedError):
    http_status, exit_status = 503, 6


class StorageFull(TrackbedError):
    http_status, exit_status = 507, 7


def by_status(status: int) -> type[TrackbedError]:
    """Return the family of an HTTP status, for clients that read a problem off the wire."""
    families: tuple[type[TrackbedError], ...] = (
        BadInput, Unauthenticated, Denied, NotFound, Conflict, TooLarge, NotYet, Unavailable, StorageFull,
    )  # fmt: skip
    return next((family for family in families if family.http_status == status), Internal)
