"""The loss curve of a small training stays what it was: a change that should not move numbers does not."""

import json
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from trackbed.engine.config import Circumstances, resolve
from trackbed.engine.parallel.ranks import Group, Ranks
from trackbed.engine.report import MetricDefinition
from trackbed.engine.train.pretrain import Folders, Outcome, pretrain

pytestmark = pytest.mark.torch
KEPT = Path(__file__).parent / "curve.json"
PARAMS = {"d_model": 32, "layers": 2, "heads": 2, "seq": 32, "batch": 8, "steps": 30, "lr": 0.01, "checkpoint_every": 0,
          "eval_samples": 8, "sample_tokens": 0}  # fmt: skip


class Listener:
    def __init__(self) -> None:
        self.losses: list[float] = []

    def should_stop(self, step: int) -> bool:
        return False

    def define(self, definition: MetricDefinition) -> None:
        pass

    def log(self, metrics: dict[str, float], *, step: int) -> None:
        self.losses += [value for key, value in metrics.items() if key in ("loss", "eval/loss")]

    def progress(self, step: int, steps_total: int, seconds_left: float | None) -> None:
        pass

    def say(self, line: str) -> None:
        pass

    def phase(self, name: str) -> AbstractContextManager[object]:
        return nullcontext()


def _train(root: Path) -> list[float]:
    (root / "corpus").mkdir()
    for number in range(12):
        (root / "corpus" / f"m{number}.py").write_text(f"def f{number}(x):\n    return x * {number}\n" * 8)
    listener = Listener()
    folders = Folders(root / "corpus", root / "output", root / "checkpoints", root)
    config = resolve("pretrain", PARAMS, Circumstances(seed=17))
    assert pretrain(config, folders, listener, group=Group(Ranks(), timeout_s=1), threads=1) is Outcome.FINISHED
    return listener.losses


def test_the_curve_is_the_kept_one(tmp_path: Path) -> None:
    assert _train(tmp_path) == pytest.approx(json.loads(KEPT.read_text()), abs=2e-4)
