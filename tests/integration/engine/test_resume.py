"""Interrupted and gone on from = never interrupted, bit for bit; on real ranks that are really killed.

Importing torch costs seconds a rank, so there are few spawns and each does much (`program.py`).
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parent / "program.py"
TINY = {"d_model": 32, "layers": 2, "heads": 2, "seq": 32, "batch": 8, "steps": 14, "checkpoint_every": 5, "lr": 0.01,
        "warmup": 3, "held_out": 0.2, "eval_samples": 20, "sample_tokens": 8}  # fmt: skip

pytestmark = [pytest.mark.torch, pytest.mark.timeout(600)]


@dataclass
class Bench:
    """A folder, a corpus of which 14 steps take more than one epoch, and ranks to spawn."""

    root: Path
    codes: dict[str, list[int]] = field(default_factory=dict[str, list[int]])

    def scenario(self, name: str, out: str = "", **more: Any) -> dict[str, Any]:
        folder = self.root / (out or name)
        folder.mkdir(exist_ok=True)
        params = TINY | more.pop("params", {})
        return {"name": name, "out": str(folder), "corpus": str(self.root / "corpus"), "params": params, **more}

    def checkpoint(self, out: str, step: int) -> Path:
        return self.root / out / "checkpoints" / f"step-{step}"

    def spawn(self, spawn: str, ranks: int, *scenarios: dict[str, Any]) -> None:
        plan = self.root / f"{spawn}.plan.json"
        plan.write_text(json.dumps(scenarios))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        shared = {
            **os.environ,
            "WORLD_SIZE": str(ranks),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "OMP_NUM_THREADS": "1",
        }
        running = [
            subprocess.Popen([sys.executable, str(PROGRAM), str(plan)], env=shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
                             stderr=(self.root / f"{spawn}.{rank}.err").open("wb"))
            for rank in range(ranks)
        ]  # fmt: skip
        self.codes[spawn] = [each.wait(300) for each in running]
        for rank, code in enumerate(self.codes[spawn]):
            if code and not any("die" in scenario for scenario in scenarios):
                raise AssertionError((self.root / f"{spawn}.{rank}.err").read_text())

    def seen(self, name: str, out: str = "") -> dict[str, Any]:
        return json.loads((self.root / (out or name) / f"{name}.json").read_text())

    def values(self, name: str, key: str, out: str = "") -> dict[int, float]:
        metrics = self.seen(name, out)["metrics"]
        return {int(step): float.fromhex(of[key]) for step, of in metrics.items() if key in of}

    def model(self, out: str) -> bytes:
        return (self.root / out / "output" / "model" / "model.safetensors").read_bytes()


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    root = tmp_path_factory.mktemp("ranks")
    (root / "corpus").mkdir()
    for number in range(10):
        text = f"def f{number}(x):\n    return x * {number} + {number**3}\n" * 5
        (root / "corpus" / f"m{number}.py").write_text(text)
    bench = Bench(root)
    micro, half = {"micro_batch": 1}, {"precision": "bf16"}
    s = bench.scenario
    bench.spawn(
        "two", 2,
        s("whole2"),
        s("stopped", stop_at=7),
        s("micro", params=micro),
        s("half2", params=half),
        s("half-cut", params=half, stop_at=6),
        s("diverged", params={"lr": 10.0, "clip": 1e9, "warmup": 0, "weight_decay": 10.0, "steps": 200}),
        s("killed2", die=[1, 8]),
    )  # fmt: skip
    shutil.copytree(bench.checkpoint("stopped", 7), root / "step-7")
    damaged = root / "step-7" / "rank-00001.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"\x7f")
    (root / "killed2" / "checkpoints" / ".staged-9").mkdir()  # as if killed while it saved
    bench.spawn(
        "two-again", 2,
        s("rest2", out="killed2", latest=str(bench.checkpoint("killed2", 5))),
        s("rest-stopped", out="stopped", latest=str(bench.checkpoint("stopped", 7))),
        s("half-rest", out="half-cut", latest=str(bench.checkpoint("half-cut", 6)), params=half),
        s("ended", out="ended", latest=str(bench.checkpoint("whole2", 14))),
        s("damaged", latest=str(root / "step-7")),
        s("from-model", weights=str(root / "whole2" / "output" / "model"), params={"steps": 1, "warmup": 1}),
        s("from-checkpoint", weights=str(bench.checkpoint("stopped", 7)), params={"steps": 1, "warmup": 1}),
        s("from-other", weights=str(root / "whole2" / "output" / "model"), params={"d_model": 64}),
        s("other", latest=str(bench.checkpoint("stopped", 7)), params={"lr": 0.02}),
    )  # fmt: skip
    bench.spawn(
        "one", 1, s("whole1"), s("half1", params=half), s("two-to-one", latest=str(bench.checkpoint("stopped", 7)))
    )
    bench.spawn(
        "four", 4, s("whole4"), s("two-to-four", latest=str(bench.checkpoint("stopped", 7))), s("killed4", die=[2, 9])
    )
    bench.spawn("four-again", 4, s("rest4", out="killed4", latest=str(bench.checkpoint("killed4", 5))))
    shared = bench.checkpoint("stopped", 7)
    bench.spawn(
        "one-again",
        1,
        s("from-checkpoint1", weights=str(shared), params={"steps": 1, "warmup": 1}),
        s("four-to-one", latest=str(bench.checkpoint("killed4", 5))),
    )
    return bench


@pytest.mark.parametrize(
    ("whole", "rest", "out", "begin"),
    [("whole2", "rest2", "killed2", 5), ("whole2", "rest-stopped", "stopped", 7), ("whole4", "rest4", "killed4", 5)],
)
def test_a_killed_or_stopped_run_goes_on_bit_for_bit(bench: Bench, whole: str, rest: str, out: str, begin: int) -> None:
    uninterrupted, resumed = bench.seen(whole)["metrics"], bench.seen(rest, out)["metrics"]
    assert list(map(int, resumed)) == list(range(begin + 1, 15))
    assert {step: uninterrupted[step] for step in resumed} == resumed
    assert bench.model(whole) == bench.model(out)
    assert "exactly" in "".join(bench.seen(rest, out)["lines"])


def test_bf16_goes_on_bit_for_bit_too(bench: Bench) -> None:
    assert bench.model("half2") == bench.model("half-cut")


def test_a_killed_rank_ends_the_others_and_leaves_a_complete_checkpoint(bench: Bench) -> None:
    assert bench.codes["two"][1] == -signal.SIGKILL
    assert bench.codes["two"][0] not in (0, -signal.SIGKILL)
    assert bench.codes["four"][2] == -signal.SIGKILL
    assert all(code != 0 for code in bench.codes["four"])


def test_a_stop_saves_at_the_step_it_was_asked_for(bench: Bench) -> None:
    assert bench.seen("stopped")["outcome"] == "stopped"
    assert list(bench.values("stopped", "loss")) == list(range(1, 8))
    assert bench.checkpoint("stopped", 7).is_dir()


def test_two_or_four_ranks_train_as_one_process_does(bench: Bench) -> None:
    alone = bench.values("whole1", "loss")
    for name in ("whole2", "whole4"):
        losses = bench.values(name, "loss")
        assert max(abs(losses[step] - alone[step]) for step in alone) <= 1e-5
    norms, alone_norms = bench.values("whole2", "grad_norm"), bench.values("whole1", "grad_norm")
    assert max(abs(norms[step] / alone_norms[step] - 1) for step in alone_norms) <= 1e-3


def test_accumulated_micro_batches_equal_the_big_batch(bench: Bench) -> None:
    big, small = bench.values("whole2", "loss"), bench.values("micro", "loss")
    assert max(abs(big[step] - small[step]) for step in list(big)[:8]) <= 1e-6


@pytest.mark.parametrize("name", ["two-to-one", "two-to-four"])
def test_another_number_of_ranks_goes_on_within_rounding(bench: Bench, name: str) -> None:
    whole, rest = bench.values("whole2", "loss"), bench.values(name, "loss")
    assert list(rest) == list(range(8, 15))
    assert max(abs(whole[step] - rest[step]) for step in rest) <= 1e-5
    assert "another layout" in "".join(bench.seen(name)["lines"])


def test_four_ranks_shrink_to_one_within_rounding(bench: Bench) -> None:
    whole, rest = bench.values("whole4", "loss"), bench.values("four-to-one", "loss")
    assert max(abs(whole[step] - rest[step]) for step in rest) <= 1e-5


def test_bf16_stays_near_fp32_on_shards_and_alone(bench: Bench) -> None:
    exact = bench.values("whole1", "loss")
    for name in ("half1", "half2"):
        losses = bench.values(name, "loss")
        assert max(abs(losses[step] - exact[step]) for step in list(exact)[:8]) <= 2e-2


def test_training_learns(bench: Bench) -> None:
    losses = bench.values("whole2", "loss")
    assert losses[1] == pytest.approx(5.549, abs=1e-3)
    assert losses[14] < 4.0


def test_a_run_that_had_ended_is_only_evaluated_again(bench: Bench) -> None:
    assert bench.seen("ended")["metrics"].keys() == {"14"}
    assert bench.values("ended", "eval/loss") == bench.values("whole2", "eval/loss")
    assert bench.model("ended") == bench.model("whole2")


def test_evaluation_counts_the_same_tokens_on_any_number_of_ranks(bench: Bench) -> None:
    tokens = {name: bench.values(name, "eval/tokens")[14] for name in ("whole1", "whole2", "whole4")}
    assert len(set(tokens.values())) == 1
    losses = [bench.values(name, "eval/loss")[14] for name in tokens]
    assert max(losses) - min(losses) <= 1e-5


def test_a_checkpoint_of_other_settings_is_refused(bench: Bench) -> None:
    assert bench.seen("other")["outcome"] == "checkpoint_other_config"


def test_a_damaged_part_is_refused_by_all_ranks(bench: Bench) -> None:
    assert bench.seen("damaged")["outcome"] == "checkpoint_damaged"


def test_a_training_begins_with_the_weights_of_a_model_or_of_a_checkpoint(bench: Bench) -> None:
    ended = bench.values("whole2", "loss")[14]
    assert abs(bench.values("from-model", "loss")[1] - ended) < 0.3
    first = bench.values("from-checkpoint", "loss")[1]
    assert abs(first - bench.values("whole2", "loss")[8]) < 0.5
    assert abs(first - bench.values("from-checkpoint1", "loss")[1]) <= 1e-6
    assert bench.seen("from-other")["outcome"] == "weights_other_shape"


def test_a_loss_that_is_no_number_ends_the_training_on_all_ranks(bench: Bench) -> None:
    assert bench.seen("diverged")["outcome"] == "loss_not_finite"


def test_two_checkpoints_stay_on_the_disk_and_nothing_half(bench: Bench) -> None:
    assert not list((bench.root / "killed2" / "checkpoints").glob(".staged-*"))
    left = sorted(path.name for path in (bench.root / "whole2" / "checkpoints").iterdir())
    assert left == ["step-10", "step-14"]
    parts = sorted(path.name for path in bench.checkpoint("whole2", 14).iterdir())
    assert parts == ["manifest.json", "rank-00000.safetensors", "rank-00001.safetensors"]


def test_the_output_holds_model_sample_and_report(bench: Bench) -> None:
    output = bench.root / "whole2" / "output"
    report = json.loads((output / "report.json").read_text())
    again = json.loads((bench.root / "ended" / "output" / "report.json").read_text())
    assert report["tokens_trained"] == again["tokens_trained"]
    assert 14 * 8 * 31 < report["tokens_trained"] < 14 * 8 * 32  # the last window of an epoch is shorter
    assert report["eval_loss"] == bench.values("whole2", "eval/loss")[14]
    assert report["parameters"] == json.loads((output / "model" / "config.json").read_text())["parameters"]
    assert (output / "sample.txt").read_bytes().startswith(b"def ")
