"""A trial: a few real steps of a run on one card before the run itself may queue, and what they tell of it."""

from typing import Literal

import msgspec

from trackbed.wire.reason import Reason

STEPS = 20
DATA_BYTES = 64 << 20
LIMIT_S = 600.0


class TrialRequest(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Sent with a submit: try first. `full_steps` is the length of the full run where its program does not say it."""

    steps: int = STEPS
    data_bytes: int = DATA_BYTES  # most of each input; 0: all of it
    limit_s: float = LIMIT_S
    full_steps: int = 0
    then_queue: bool = False


class DataSlice(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What a trial was given of an input: whole files, and text files up to the end of a line."""

    name: str
    files: int
    of_files: int
    size_bytes: int
    of_bytes: int
    cut: list[str] = []  # files of which only the beginning was given


class LossTrend(msgspec.Struct, kw_only=True, omit_defaults=True):
    """`slope` is the change a step of the straight line through all points; non-finite values as words."""

    key: str
    first: float | str
    last: float | str
    slope: float = 0.0
    points: int = 0
    trend: Literal["falling", "flat", "rising", "not_finite"] = "flat"


class Forecast(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The full run by what the trial took, with the least and the most that it may be. `how` says what was assumed."""

    steps: int
    cards: int
    seconds: float
    seconds_low: float
    seconds_high: float
    card_hours: float
    card_hours_low: float
    card_hours_high: float
    cost: float | None = None  # None: no price is set
    cost_low: float | None = None
    cost_high: float | None = None
    currency: str = ""
    how: list[Reason] = []


class TrialReport(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What the steps showed. A figure that could not be measured is None, and `remarks` say why and how to get it."""

    steps: int = 0
    seconds: float = 0.0  # of the attempt, from the start of the program to its end
    startup_s: float | None = None  # until the first step was done
    steps_per_s: float | None = None
    step_seconds: list[float] = []  # 10th, 50th and 90th percentile
    peak_rss_bytes: int | None = None
    peak_card_bytes: int | None = None
    card_bytes: int | None = None  # memory of the card, where it is known
    checkpoint_bytes: int | None = None
    loss: LossTrend | None = None
    forecast: Forecast | None = None
    remarks: list[Reason] = []


class TrialView(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A trial with the runs that wait for it. `good`: it ended well and nothing in it speaks against the full run."""

    trial_id: str
    trial_ref: str
    state: Literal["waiting", "running", "good", "bad", "dropped"]
    runs: list[str] = []  # refs of the runs that it was made for
    run_ids: list[str] = []
    steps: int = STEPS  # asked
    data: list[DataSlice] = []
    then_queue: bool = False
    reason: Reason | None = None  # why it is bad
    report: TrialReport | None = None
