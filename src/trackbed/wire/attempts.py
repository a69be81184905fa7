"""What server and supervisor say to each other. Protocol 1; the server speaks every protocol of a live attempt.

The supervisor holds the attempt token and may write its own attempt only. Every report carries the epoch; an older
one is answered `epoch_superseded` (409). All reports are idempotent: sending one twice changes nothing.
"""

from typing import Any, Literal

import msgspec

from trackbed.wire.spec import CheckpointPolicy, DataPin, FromPin, Hang, OnPreempt, Stage
from trackbed.wire.surroundings import EnvironmentFound

PROTOCOL = 1


class NodeSlot(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The cards of one node that belong to the attempt, in LOCAL_RANK order."""

    node: str
    address: str = "127.0.0.1"
    cards: list[int] = []
    card_kind: str = "cpu"


class ResumePin(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The checkpoint that this attempt starts from; `latest` points to it before the ranks start."""

    name: str
    step: int
    digest: str


class LeaseSettings(msgspec.Struct, kw_only=True, omit_defaults=True):
    heartbeat_s: float = 5.0
    lease_s: float = 60.0
    orphan_limit_s: float = 24 * 3600.0
    fencing: Literal["relaxed", "strict"] = "relaxed"


class Assignment(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Everything a supervisor needs. Written by the engine as `assignment.json` (0600) into the attempt's folder."""

    protocol: int = PROTOCOL
    attempt_id: str
    number: int
    epoch: int
    run_id: str
    run_ref: str
    project: str
    project_id: str = ""
    run_name: str = ""
    space: str = "default"
    owner: str = ""
    server_url: str = ""
    token: str = ""
    node_rank: int = 0
    nodes: list[NodeSlot] = []
    store_url: str = ""  # grant: where this node may read and write blobs directly; empty: by proxy over HTTP
    stage: Stage | None = None  # of a run with stages: the one that this attempt runs
    inputs: dict[str, str] = {}  # stage inputs: name → tree digest of the product
    command: str = ""  # for sh -c, params already substituted; empty for a recipe
    recipe: str = ""
    launcher: str = "rank_per_card"
    cpus_per_card: int = 1
    env: dict[str, str] = {}
    params: dict[str, Any] = {}
    seed: int = 0
    determinism: str = "exact"
    tree: str = ""  # digest; empty: an empty working folder
    environment: dict[str, Any] = {}  # EnvironmentRecord as a document
    pack: str = ""  # tree digest of the packed lock; empty: the environment is there already
    environment_drift: Literal["refuse", "flag"] = "refuse"
    data: dict[str, DataPin] = {}
    from_: FromPin | None = msgspec.field(default=None, name="from")
    resume: ResumePin | None = None
    checkpoint: CheckpointPolicy = msgspec.field(default_factory=CheckpointPolicy)
    on_preempt: OnPreempt = msgspec.field(default_factory=OnPreempt)
    hang: Hang = msgspec.field(default_factory=Hang)
    on_rank_loss: str = "end"
    time_limit_s: float | None = None
    trial_steps: int = 0  # of a trial: it leaves after so many
    lease: LeaseSettings = msgspec.field(default_factory=LeaseSettings)


class Order(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A wish of the server. `kind` is a `domain.states.OrderKind`; `withdrawn` takes the one of the same id back."""

    id: str
    kind: str
    grace_s: float = 120.0
    reason: str = ""
    withdrawn: bool = False


class RankReport(msgspec.Struct, kw_only=True, omit_defaults=True):
    rank: int
    pid: int = 0
    state: Literal["starting", "running", "exited"] = "starting"
    exit_code: int | None = None
    signal: int | None = None


class LeaseRequest(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Sent back to back; the server renews at once, then may hold the reply up to `wait_s` until there is an order."""

    epoch: int
    node: str
    node_rank: int = 0
    boot_id: str = ""
    phase: Literal["starting", "running", "saving", "ended"] = "starting"
    ranks: list[RankReport] = []
    backlog_bytes: int = 0
    order_seen: str = ""  # id of the last order acted on
    environment: EnvironmentFound | None = None  # until an answer shows that it was heard
    wait_s: float = 0.0


class LeaseReply(msgspec.Struct, kw_only=True, omit_defaults=True):
    """`superseded`: another attempt owns the run; stop the ranks, keep the spool."""

    verdict: Literal["held", "superseded"] = "held"
    lease_s: float = 60.0
    order: Order | None = None


class CheckpointReport(msgspec.Struct, kw_only=True, omit_defaults=True):
    """All parts are in the store and verified. Moves the run's current checkpoint, conditioned on the epoch."""

    epoch: int
    name: str
    step: int
    digest: str
    size_bytes: int = 0
    stage: str = ""
    created_us: int = 0


class InputFetch(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One input on one node: `fetched_bytes` came from the store, the rest of `size_bytes` was in the node's cache."""

    name: str
    size_bytes: int = 0
    fetched_bytes: int = 0
    seconds: float = 0.0  # that the attempt waited for it


class InputsReport(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Everything that the attempt needs is on this node."""

    epoch: int
    node_rank: int = 0
    inputs: list[InputFetch] = []


class OutputEntry(msgspec.Struct, kw_only=True, omit_defaults=True):
    path: str
    size_bytes: int
    file_digest: str
    kind: str = "other"


class OutputsReport(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What lay in TRACKBED_OUTPUT at the end (or a file saved on the way, `partial`), already in the store."""

    epoch: int
    digest: str = ""  # tree digest of the whole folder
    entries: list[OutputEntry] = []
    products: dict[str, str] = {}  # stage products: name → tree digest
    partial: bool = False


class ExitReport(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The last word: every process of the attempt is gone. Sent after frames, checkpoints and outputs."""

    epoch: int
    cause: str
    evidence: dict[str, Any] = {}
    ranks: list[RankReport] = []
    started_us: int = 0
    ended_us: int = 0
    stop_step: int | None = None
    lost_to_step: int | None = None  # highest step seen in the spool, to count what the next attempt replays
    salvaged: bool = False  # reported by a later process from what the dead supervisor left
