"""The resolved spec of a run: what `workflow.spec` makes of `trackbed.yaml`, template and `--set`; stored on the record."""

from typing import Any, Literal

import msgspec

SPEC_VERSION = 1


class Resources(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What one attempt takes. `cards: n` in a file is `cards_per_node: n, nodes: 1`; 0 cards is one plain process."""

    cards_per_node: int = 1
    nodes: int = 1
    kind: str = "any"
    card_memory_bytes: int = 0
    cpus_per_card: int = 1
    ram_per_card_bytes: int = 0
    shm_bytes: int = 0
    only: list[str] = []
    not_: list[str] = msgspec.field(default_factory=list, name="not")
    time_limit_s: float | None = None

    @property
    def cards(self) -> int:
        return self.cards_per_node * self.nodes


class Keep(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Which checkpoints stay in the store: the newest, and the best by a metric. `goal` empty: as the metric is defined, else min."""

    last: int = 2
    best: int = 0
    by: str = ""
    goal: Literal["", "min", "max"] = ""


class CheckpointPolicy(msgspec.Struct, kw_only=True, omit_defaults=True):
    """`every` is read by our engine and `run.should_save`; `upload` (every n-th) and `keep` concern the store's copies."""

    every_steps: int | None = None
    every_s: float | None = None
    every_epoch: bool = False
    keep: Keep | None = None  # None: all stay
    upload_every: int = 1


class OnPreempt(msgspec.Struct, kw_only=True, omit_defaults=True):
    signal: str = "TERM"
    grace_s: float = 120.0


class Hang(msgspec.Struct, kw_only=True, omit_defaults=True):
    """`after_s` without progress is noted with stacks (None: learnt from the program's own pace); `end` ends the attempt as hung."""

    after_s: float | None = None
    end: bool = False


class DataPin(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A named input. `ref` is what was written; the rest is filled when names resolve to digests."""

    ref: str
    dataset: str = ""
    version: int = 0
    digest: str = ""
    kind: Literal["folder", "file"] = "folder"
    size_bytes: int = 0
    slice_of: str = ""  # of a trial: digest of the whole; `digest` is that of the part it is given


class FromPin(msgspec.Struct, kw_only=True, omit_defaults=True):
    """`from: {model: …}` or `{checkpoint: …, state: weights | all}`."""

    kind: Literal["model", "checkpoint"]
    ref: str
    digest: str = ""
    state: Literal["weights", "all"] = "weights"
    run_id: str = ""
    step: int = 0


class RegisterRule(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Register `path` below the outputs as the next version of `model` if `when` holds at the end."""

    model: str
    when: str = ""
    path: str = "model"


class Uses(msgspec.Struct, kw_only=True, omit_defaults=True):
    """All that a stage is given of the run; None: everything. What is not named here is not there when the stage runs."""

    files: list[str] | None = None  # of the tree: files, folders, patterns
    data: list[str] | None = None  # names of the run's inputs
    params: list[str] | None = None
    tree: str = ""  # digest of the named part of the tree, filled at submit


class Stage(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A part of a run that leaves a checked output. Exactly one of run, recipe, suite."""

    name: str
    run: str = ""
    recipe: str = ""
    suite: str = ""
    needs: list[str] = []
    inputs: dict[str, str] = {}  # name → "stage.product", found as TRACKBED_DATA_<NAME>
    produces: dict[str, str] = {}  # product → folder or file below the working folder or TRACKBED_OUTPUT
    params: dict[str, Any] = {}
    resources: Resources | None = None  # None: the run's
    launcher: Literal["rank_per_card", "process_per_node", "none"] | None = None
    uses: Uses | None = None


class CodePart(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A folder whose working tree goes into the job's: at the top, or in the folder `name`. `include`: ignored files too."""

    path: str
    name: str = ""
    include: list[str] = []


class Trial(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Marks a run that only tries another one: so many steps on one card, then it leaves."""

    steps: int = 20
    full_steps: int = 0  # of the run it is made for, where somebody said so


class Spec(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Everything asked for, checked. Exactly one of run, recipe, stages."""

    version: int = SPEC_VERSION
    project: str = "demo"
    space: str = "default"
    name: str = ""
    description: str = ""
    tags: list[str] = []
    template: str = ""
    data: dict[str, DataPin] = {}
    from_: FromPin | None = msgspec.field(default=None, name="from")
    code: str | list[CodePart] = "."
    environment: str = "current"
    seed: int = 0
    determinism: Literal["exact", "recorded"] = "exact"
    params: dict[str, Any] = {}
    resources: Resources = msgspec.field(default_factory=Resources)
    priority: Literal["urgent", "high", "normal", "low", "idle"] = "normal"
    env: dict[str, str] = {}
    run: str = ""
    recipe: str = ""
    stages: list[Stage] = []
    launcher: Literal["rank_per_card", "process_per_node", "none"] = "rank_per_card"
    checkpoint: CheckpointPolicy = msgspec.field(default_factory=CheckpointPolicy)
    on_preempt: OnPreempt = msgspec.field(default_factory=OnPreempt)
    hang: Hang = msgspec.field(default_factory=Hang)
    on_rank_loss: Literal["end"] = "end"
    fencing: Literal["relaxed", "strict"] = "relaxed"
    orphan_limit_s: float = 24 * 3600.0
    retries: dict[str, int] = {}  # cause → count; absent: domain.states.DEFAULT_RETRIES
    register: RegisterRule | None = None
    cache: bool = True  # a stage that was run before with all the same is not run again
    matrix: dict[str, list[Any]] = {}  # param (or seed) → values; a request only: each run of it has its own values
    trial: Trial | None = None  # by the server only; nobody writes it into a file
