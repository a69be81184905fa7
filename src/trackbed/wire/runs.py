"""Runs, attempts, events as people and programs read them; submit and the verbs on a run."""

from typing import Any, Literal

import msgspec

from trackbed.wire.attempts import InputFetch
from trackbed.wire.bundle import OriginView
from trackbed.wire.marks import Anomaly
from trackbed.wire.reason import Reason
from trackbed.wire.spec import Spec
from trackbed.wire.trial import TrialRequest, TrialView


class CommitFacts(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A commit that lines of a captured tree came from."""

    id: str
    author: str = ""
    time_us: int = 0
    subject: str = ""


class TreeFacts(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Where a captured tree came from. `dirty` counts changed and untracked files that were captured."""

    digest: str
    commit: str = ""
    branch: str = ""
    remote: str = ""  # password stripped
    dirty: int = 0
    untracked: int = 0
    ignored: int = 0
    files: int = 0
    size_bytes: int = 0
    patch: str = ""  # text diff against the commit, for reading; the tree is the truth
    patch_cut_bytes: int = 0  # how much of the patch was left out
    nested: list[str] = []  # repositories inside, captured as files: "path@commit"
    name: str = ""  # of one repository among several: its folder in the tree
    ignored_paths: list[str] = []  # what git ignores, folders with `/`: it is not in the tree
    ignored_more: int = 0  # how many of these are not named
    missing_submodules: list[str] = []  # declared, but not checked out: empty folders
    lfs_pointers: list[str] = []  # files that hold only a pointer: `git lfs pull` was not run
    unpushed: list[str] = []  # commits that no remote has: "hash subject"; the newest
    unpushed_count: int = 0
    blame: dict[
        str, list[tuple[int, int, int]]
    ] = {}  # path → (first line, lines, index in `commits` or -1: not committed)
    base: str = ""  # commit where the branch left the main line
    touched: dict[str, list[tuple[int, int]]] = {}  # path → (first line, lines) of the base that the branch changes
    commits: list[CommitFacts] = []  # since the run before, as `blame` names them
    repositories: list["TreeFacts"] = []  # of a tree of several: each with its own digest and commit


class Package(msgspec.Struct, kw_only=True, omit_defaults=True, array_like=True):
    name: str
    version: str
    digest: str = ""  # BLAKE3 of the package's RECORD file
    source: str = (
        ""  # direct_url of the install: "editable file:///…", a VCS address with its commit; password stripped
    )


class EnvironmentRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """`current`: the environment of the submitting interpreter, pinned by the hashes of its packages' file lists.

    `lock`: packages with hashes, installed once and packed; its digest is that of the canonical text of the lock.
    `image`: a container image by its digest.
    """

    digest: str = ""  # b3: of the canonical JSON of everything else but `executable`
    kind: str = "current"
    python: str = ""  # "CPython 3.11.7"
    platform: str = ""  # "linux-x86_64"
    executable: str = ""  # same machine only
    packages: list[Package] = []
    lock: str = ""  # canonical text (docs/formats/lock.md)
    image: str = ""  # name@sha256:…
    modified: list[str] = []  # installed files that are not as their package says: "package: path sha256=…"


class SubmitRequest(msgspec.Struct, kw_only=True, omit_defaults=True):
    """All blobs of the tree are in the store before this is sent. Names in the spec resolve on the server."""

    spec: Spec
    tree: TreeFacts | None = None
    environment: EnvironmentRecord | None = None
    dry_run: bool = False
    reproduces: str = ""  # run id
    values: dict[str, Any] = {}  # what file and --set say, in the form of the file; a template is resolved from it
    set_fields: list[str] = []  # names of those that came by --set
    like: str = ""  # run that it was made from, by other values
    trial: TrialRequest | None = None  # a few real steps first; the run is held until they are done


class ResolvedValue(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One value of a resolved spec and where it came from."""

    field: str
    value: Any = None
    origin: Literal["template", "file", "set", "default"] = "file"


class SubmittedRun(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One run of a matrix, with its own values. On a dry run without id and name."""

    run_id: str = ""
    ref: str = ""
    url: str = ""
    values: dict[str, Any] = {}


class Estimate(msgspec.Struct, kw_only=True, omit_defaults=True):
    """When a run would start and what it would cost, were it submitted now. None: nothing to tell it from."""

    starts_now: bool = False
    reason: Reason | None = None  # why it would wait
    ahead: int = 0  # runs that wait before it
    not_before_s: float | None = None  # by the time limits of what runs; what waits before it may take longer
    card_hours_most: float | None = None  # cards for the whole time limit; of all runs of a matrix together
    card_hours_like: float | None = None  # median of the runs like it
    seconds_like: float | None = None
    like: int = 0  # how many finished runs of that name or template
    cost_most: float | None = None
    cost_like: float | None = None
    currency: str = ""


class SubmitReply(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Of a matrix: the first run, and all of them in `runs`; `group` is the tag that they share."""

    run_id: str = ""  # empty on a dry run
    ref: str = ""  # demo#17
    url: str = ""
    spec: Spec
    warnings: list[Reason] = []
    runs: list[SubmittedRun] = []
    group: str = ""
    resolved: list[ResolvedValue] = []  # answer to a dry run
    estimate: Estimate | None = None  # answer to a dry run
    commits_before: list[str] = []  # answer to a dry run: of the newest runs of the project
    trial_id: str = ""  # run that tries it first
    trial_ref: str = ""


class AttemptView(msgspec.Struct, kw_only=True, omit_defaults=True):
    id: str
    number: int
    epoch: int
    state: str
    stage: str = ""
    cause: str = ""
    reason: Reason | None = None
    evidence: dict[str, Any] = {}  # exit codes per rank, signal, OOM marks, last lines
    placement: list[dict[str, Any]] = []  # [{node, cards: [0, 1], ranks: [0, 1]}]
    created_us: int = 0
    started_us: int = 0
    ended_us: int = 0
    card_seconds: float = 0.0
    inputs: list[InputFetch] = []  # what its nodes fetched, what they had in their caches, how long it waited
    resumed_from_step: int | None = None
    lost_steps: int = 0
    contact_us: int = 0


class StageView(msgspec.Struct, kw_only=True, omit_defaults=True):
    name: str
    state: Literal["waiting", "running", "done", "failed"] = "waiting"
    products: dict[str, str] = {}  # product → tree digest
    attempt: int = 0  # 0: none yet, or its products were taken from an earlier run
    needs: list[str] = []
    cache: Literal["", "hit", "miss", "off"] = ""
    reason: Reason | None = None  # why it was taken from an earlier run, or why not
    key: str = ""  # digest of everything that its products depend on
    from_run: str = ""  # run id that left the products of a hit
    run: str = ""  # run that works on this stage beside the others
    run_id: str = ""


class Progress(msgspec.Struct, kw_only=True, omit_defaults=True):
    step: int = 0
    steps_total: int = 0
    seconds_left: float | None = None
    updated_us: int = 0


class RunView(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One row of the runs table and the head of the run page."""

    id: str
    ref: str
    number: int
    project: str
    space: str
    name: str = ""
    description: str = ""
    state: str
    cause: str = ""
    reason: Reason | None = None  # why it waits, or what ended it
    owner: str = ""
    tags: list[str] = []
    priority: str = "normal"
    cards: int = 0
    outside: bool = False
    created_us: int = 0
    queued_us: int = 0
    started_us: int = 0
    ended_us: int = 0
    contact_us: int = 0
    attempt: int = 0
    card_seconds: float = 0.0
    progress: Progress | None = None
    version: int = 0  # of the row: optimistic writes send it back
    marks: list[str] = []  # kinds of anomalies that are open: non_finite, spike, divergence, plateau, stalled
    metrics: dict[
        str, float | str
    ] = {}  # last value of the asked columns; non-finite as "NaN", "Infinity", "-Infinity"
    params: dict[str, Any] = {}


class CheckpointView(msgspec.Struct, kw_only=True, omit_defaults=True):
    step: int
    name: str
    digest: str = ""
    size_bytes: int = 0
    attempt: int = 0
    state: Literal["staged", "durable", "current", "dropped"] = "durable"
    created_us: int = 0


class ArtifactView(msgspec.Struct, kw_only=True, omit_defaults=True):
    path: str
    kind: str  # model | checkpoint | report | log | sample | table | image | text | other
    size_bytes: int
    file_digest: str
    attempt: int = 0
    created_us: int = 0


class FieldChange(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One value of a spec in two runs; None where it is not there."""

    field: str
    before: Any = None
    after: Any = None


class LikeView(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The run that a run was made from (`submit --like`, `fork`), and what was changed."""

    run_id: str
    ref: str
    kind: Literal["clone", "fork"] = "clone"
    changes: list[FieldChange] = []


class CloneView(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A run as a file that would submit it again: change `values` (or the text), then send `request` with them."""

    request: SubmitRequest
    text: str = ""  # YAML of request.values


class RunDetail(msgspec.Struct, kw_only=True, omit_defaults=True):
    """All of a run's record but series and logs."""

    run: RunView
    spec: Spec
    tree: TreeFacts | None = None
    environment: EnvironmentRecord | None = None
    attempts: list[AttemptView] = []
    stages: list[StageView] = []
    checkpoints: list[CheckpointView] = []
    checkpoints_dropped: list[CheckpointView] = []  # by `checkpoint.keep`; nothing of them can be fetched
    artifacts: list[ArtifactView] = []
    summary: dict[str, Any] = {}
    metric_keys: list[str] = []
    models: list[str] = []  # name@version registered by this run
    reproduces: str = ""
    nondeterminism: list[str] = []
    like: LikeView | None = None
    anomalies: list[Anomaly] = []  # newest first
    trial: TrialView | None = None  # that was made for this run, or that this run is
    origin: OriginView | None = None  # of a foreign run: it was imported


class RunPage(msgspec.Struct, kw_only=True, omit_defaults=True):
    runs: list[RunView]
    next: str = ""  # cursor of the next page; empty on the last
    total: int = 0


class EventView(msgspec.Struct, kw_only=True, omit_defaults=True):
    """`id` is a journal position: ask again with `after=id`."""

    id: int
    time_us: int
    kind: str
    actor: str
    subject: str
    run_id: str = ""
    attempt: str = ""
    data: dict[str, Any] = {}


class MetricDifference(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Where two curves part. Values as Python writes them exactly; `-` where one curve has no point."""

    key: str
    step: int
    before: str
    after: str


class Unequal(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One thing that is not the same in two runs. `what`: metric | product | output."""

    what: str
    name: str
    before: str = ""
    after: str = ""


class ReproductionVerdict(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Whether a run came out as the one it reproduces.

    Compared are the curves declared deterministic (bit for bit), the products of stages and the files of the output (by digest).
    Files of the output decide only where neither curves nor products do: many hold times and paths.
    """

    run: str
    reproduces: str
    equal: bool = False
    verdict: Literal["equal", "within", "differs", "nothing"] = "nothing"  # within: curves only, up to `tolerance`
    finished: bool = False  # both ended; before that `equal` speaks of what there is so far
    keys: list[str] = []
    first: MetricDifference | None = None
    greatest: float = 0.0  # relative difference of any two points at a step
    tolerance: float = 0.0
    products: int = 0  # compared
    outputs: int = 0
    unequal: list[Unequal] = []
    why: list[Reason] = []  # what else differs between the records, the likeliest first
    nondeterminism: list[str] = []  # what the records say is not deterministic


class VerbRequest(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Body of stop, pause, resume, retry, hold, release."""

    grace_s: float | None = None
    message: str = ""


class OutsideRunRequest(msgspec.Struct, kw_only=True, omit_defaults=True):
    """`trackbed.init()` without a submit. `key` makes a repeated create return the same run."""

    project: str = "demo"
    name: str = ""
    tags: list[str] = []
    params: dict[str, Any] = {}
    key: str = ""
    started_us: int = 0


class NodeView(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A machine of the pool. `cards[i]` = {index, kind, memory_bytes, state: free|held|unknown|cordoned, run, space}."""

    name: str
    state: str
    cards: list[dict[str, Any]] = []
    contact_us: int = 0


class QueueEntry(msgspec.Struct, kw_only=True, omit_defaults=True):
    place: int
    run: RunView
    reason: Reason


class StatusView(msgspec.Struct, kw_only=True, omit_defaults=True):
    version: str
    url: str = ""
    started_us: int = 0
    one_trust_domain: bool = True
    counts: dict[str, int] = {}  # run state → number
    cards_total: int = 0
    cards_held: int = 0
    platforms: list[str] = []  # of the pool's nodes, as locks name them
    lane_wait_p99_ms: float = 0.0
    warnings: list[Reason] = []
