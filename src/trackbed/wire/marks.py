"""What was noticed about a run while it ran: anomalies of its curves, slow steps. And what tags of metrics show."""

import msgspec


class Anomaly(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Something of a run that is not as it should be: one of a kind is open on a metric at a time.

    Values travel as numbers or as the words NaN, Infinity, -Infinity. `stalled` has no metric; `expected` is then the usual
    time of a step in seconds, `waits_for` what it seems to wait for (`ranks 3, 5`, `contact`), as far as that is known.
    """

    kind: str  # non_finite | spike | divergence | plateau | stalled
    key: str = ""
    number: int = 1  # of this kind on this metric
    open: bool = True
    rank: int = 0
    first_step: int = 0
    last_step: int = 0
    count: int = 0  # points
    value: float | str = 0.0
    worst: float | str = 0.0
    expected: float | str | None = None
    opened_us: int = 0
    closed_us: int = 0
    waits_for: str = ""


class AnomaliesReply(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Newest first. `watched`: metrics whose curves are judged; every other one for finiteness only."""

    anomalies: list[Anomaly]
    watched: list[str] = []


class SlowStep(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A step that took far more than the median of those before it."""

    step: int
    attempt: int
    time_us: int
    seconds: float
    median_s: float
    split: dict[str, float] = {}  # seconds by phase; empty where the program reports none
    cause: str = ""  # the phase that took most more than usual
    straggler: int | None = None  # the rank that worked while the others waited
    straggler_s: float = 0.0


class RankWork(msgspec.Struct, kw_only=True, omit_defaults=True):
    """How far a rank is and the seconds a step it works, waiting for others left out (a moving mean)."""

    rank: int
    step: int
    work_s: float


class StepsReply(msgspec.Struct, kw_only=True, omit_defaults=True):
    """How a run's steps go. `split` is the usual seconds of a step by phase; `slow` the slowest ones, by step."""

    steps: int = 0
    median_s: float | None = None
    split: dict[str, float] = {}
    slow: list[SlowStep] = []
    slow_total: int = 0
    ranks: list[RankWork] = []


class MetricTag(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A tag that `define_metric` gave, its metrics, and how many runs have one of them."""

    tag: str
    keys: list[str]
    runs: int


class TaggedValue(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A metric with the asked tag in one run. `version`: of the asked dataset or model; `best` is None without a goal."""

    run: str
    ref: str
    name: str = ""
    state: str = ""
    created_us: int = 0
    key: str
    goal: str = ""
    unit: str = ""
    last: float | str = 0.0
    best: float | None = None
    data: dict[str, str] = {}  # input → dataset@version
    version: int = 0
