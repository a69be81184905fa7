"""What the server says about its store: to a supervisor that may use it directly, and to an admin who looks after it."""

from typing import Any, TypeVar

import msgspec

_T = TypeVar("_T", bound=msgspec.Struct)


class S3Grant(msgspec.Struct, kw_only=True):
    key_id: str
    secret: str
    token: str = ""


class StoreGrant(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The right to read and write one store domain for a while. Kept in memory only, never written down."""

    url: str
    store_id: str = ""  # hex; empty: the store is not sealed
    secrets: dict[str, str] = {}  # generation → key of the domain, hex
    s3: S3Grant | None = None
    expires_s: float = 3600.0
    rate: float = 0.0  # most bytes a second of this attempt on this node; 0: no limit


def _sum(one: _T, other: _T) -> _T:
    """Numbers and lists add up; what must hold for both is true if it is for both."""
    values: dict[str, Any] = {}
    for name in one.__struct_fields__:
        a, b = getattr(one, name), getattr(other, name)
        values[name] = (a and b) if isinstance(a, bool) else a + b
    return type(one)(**values)


class BrokenView(msgspec.Struct, kw_only=True):
    what: str  # an object, a frame of a pack (`name#frame`), a tree or a file
    code: str
    why: str


class VerifyRequest(msgspec.Struct, kw_only=True, omit_defaults=True):
    share: float = 1.0  # of the frames that are read; everything above them is always read


class VerifyReply(msgspec.Struct, kw_only=True):
    clean: bool
    trees: int = 0
    files: int = 0
    packs: int = 0
    frames: int = 0
    frames_read: int = 0
    bytes_stored: int = 0
    bytes_read: int = 0
    index_sound: bool = True
    index_lags: int = 0
    broken: list[BrokenView] = []
    quarantined: list[str] = []
    frames_saved: int = 0
    frames_lost: int = 0
    broken_trees: list[BrokenView] = []  # whose data must be added again

    def plus(self, other: "VerifyReply") -> "VerifyReply":
        """Both together: of several domains."""
        return _sum(self, other)


class CollectRequest(msgspec.Struct, kw_only=True, omit_defaults=True):
    dry_run: bool = False
    grace_s: float = 24 * 3600.0
    compact: bool = True


class CollectReply(msgspec.Struct, kw_only=True):
    """See `storage.gc.GcReport`."""

    dry_run: bool
    trees: int = 0
    trees_marked: int = 0
    trees_dropped: int = 0
    trees_lifted: int = 0
    packs: int = 0
    bytes_stored: int = 0
    bytes_reached: int = 0
    packs_marked: int = 0
    packs_swept: int = 0
    packs_lifted: int = 0
    packs_compacted: int = 0
    bytes_marked: int = 0
    bytes_freed: int = 0

    def plus(self, other: "CollectReply") -> "CollectReply":
        """Both together: of several domains."""
        return _sum(self, other)


class StoreSettings(msgspec.Struct, kw_only=True, omit_defaults=True):
    """How the server looks after its store. Changed by an admin, valid for every server of the installation."""

    gc_every_s: float = 24 * 3600.0  # 0: never by itself
    gc_grace_s: float = 24 * 3600.0
    gc_dry_run: bool = False  # tell what would go, and touch nothing
    low_water_h: float = 24.0  # alarm when the disk is full in fewer hours at the measured growth
    capacity_bytes: int = 0  # of a bucket, which does not tell; 0: not known


class GcState(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What collecting did last. `failed`: code of what kept it from its work, with its sentence."""

    last_us: int = 0
    seconds: float = 0.0
    report: CollectReply | None = None
    failed: str = ""
    why: str = ""
    next_us: int = 0  # 0: not by itself


class StoreView(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The store as its keepers see it. Bytes are of the disk (or `capacity_bytes`) that the store lies on."""

    url: str
    sealed: bool = True
    settings: StoreSettings = msgspec.field(default_factory=StoreSettings)
    gc: GcState = msgspec.field(default_factory=GcState)
    measured_us: int = 0
    stored_bytes: int = 0
    free_bytes: int | None = None  # None: the place does not tell
    total_bytes: int | None = None
    growth_bytes_per_h: float | None = None  # None: not measured for long enough yet
    hours_left: float | None = None  # None: it does not grow, or nobody knows
    low: bool = False
    low_since_us: int = 0
    checkpoints_to_free: int = 0  # dropped by `checkpoint.keep`, still in the store
    bytes_to_free: int = 0
