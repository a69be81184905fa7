"""The worker as a program: on its own, killed from outside, and in the folder of a job."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from trackbed.formats.checkpoint import read

pytestmark = [pytest.mark.torch, pytest.mark.timeout(600)]
TINY = {
    "d_model": 32,
    "layers": 2,
    "heads": 2,
    "seq": 32,
    "batch": 8,
    "lr": 0.01,
    "sample_tokens": 8,
    "eval_samples": 8,
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    for number in range(20):
        (folder / f"m{number}.py").write_text(f"def f{number}(x):\n    return x * {number}\n" * 20)
    return folder


def _start(
    root: Path, corpus: Path, *, ranks: int = 2, arguments: tuple[str, ...] = ("pretrain",), **env: str
) -> list[subprocess.Popen[bytes]]:
    root.mkdir(exist_ok=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    shared = {k: v for k, v in os.environ.items() if not k.startswith("TRACKBED_")} | {
        "TRACKBED_DATA_CORPUS": str(corpus), "TRACKBED_OUTPUT": str(root / "output"), "TRACKBED_SCRATCH": str(root / "scratch"),
        "TRACKBED_CHECKPOINTS": str(root / "checkpoints"), "TRACKBED_PARAMS": str(root / "params.json"),
        "TRACKBED_COLLECTIVE_TIMEOUT_S": "60", "WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks),
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1", **env,
    }  # fmt: skip
    return [
        subprocess.Popen(
            [sys.executable, "-m", "trackbed.worker", *arguments],
            env=shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=(root / f"{rank}.out").open("ab"), stderr=(root / f"{rank}.err").open("ab"),
        )
        for rank in range(ranks)
    ]  # fmt: skip


def _end(running: list[subprocess.Popen[bytes]]) -> list[int]:
    try:
        return [each.wait(240) for each in running]
    finally:
        for each in running:
            if each.poll() is None:
                each.kill()
                each.wait()


def _wait(what: str, done: Any, running: list[subprocess.Popen[bytes]]) -> None:
    deadline = time.monotonic() + 200
    while not done():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        assert all(each.poll() is None for each in running), f"a rank ended while waiting for {what}"
        time.sleep(0.01)


def _params(root: Path, **params: Any) -> None:
    root.mkdir(exist_ok=True)
    (root / "params.json").write_text(json.dumps(TINY | params))


def _losses(root: Path) -> dict[int, tuple[float, ...]]:
    """By step; of a step that was taken twice, the later one."""
    lines = [json.loads(line) for line in (root / "output" / "metrics.jsonl").read_text().splitlines()]
    return {line["step"]: (line["loss"], line["lr"], line["grad_norm"]) for line in lines if "loss" in line}


def test_a_run_whose_rank_is_killed_from_outside_goes_on_bit_for_bit(tmp_path: Path, corpus: Path) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    for root in (whole, cut):
        _params(root, steps=200, checkpoint_every=20)
    assert _end(_start(whole, corpus)) == [0, 0]

    running = _start(cut, corpus)
    _wait("a checkpoint", lambda: list((cut / "checkpoints").glob("step-*")), running)
    running[1].send_signal(signal.SIGKILL)
    assert _end(running) == [75, -signal.SIGKILL]
    before = _losses(cut)
    assert max(before) < 200
    assert _end(_start(cut, corpus)) == [0, 0]

    assert _losses(cut) == _losses(whole)
    assert before.items() <= _losses(whole).items()
    model = Path("output/model/model.safetensors")
    assert (cut / model).read_bytes() == (whole / model).read_bytes()


def _job(root: Path, **job: Any) -> Path:
    control = root / "control"
    (control / "spool").mkdir(parents=True)
    (control / "job.json").write_text(json.dumps({"recipe": "pretrain", "seed": 17, "determinism": "exact"} | job))
    return control


def test_in_a_job_all_ranks_leave_at_the_verdict_with_a_checkpoint_and_their_numbers_spooled(
    tmp_path: Path, corpus: Path
) -> None:
    root = tmp_path / "job"
    _params(root, steps=100_000)
    control = _job(root, checkpoint={"every_steps": 25})
    running = _start(
        root, corpus, arguments=(), TRACKBED_CONTROL=str(control), TRACKBED_RUN="run_test", TRACKBED_ATTEMPT="1"
    )
    _wait("step 25", lambda: (root / "checkpoints" / "step-25").is_dir(), running)
    (control / "stop.json").write_text(json.dumps({"order": "ord_1", "reason": "pause", "grace": 120.0}))
    asked = [control / "asked" / str(rank) for rank in (0, 1)]
    _wait("both ranks to ask", lambda: all(path.exists() for path in asked), running)
    stop_at = 1 + max(int(path.read_text()) for path in asked)
    part = control / "verdict.part"
    part.write_text(json.dumps({"order": "ord_1", "stop_at": stop_at}))
    part.replace(control / "verdict.json")
    assert _end(running) == [0, 0], (root / "0.err").read_text()

    manifest = read(root / "checkpoints" / f"step-{stop_at}")
    assert (manifest.step, manifest.state["consumed"], manifest.world_size) == (stop_at, 8 * stop_at, 2)
    assert f"left at step {stop_at}" in (root / "0.out").read_text()
    assert (root / "1.out").read_bytes() == b""
    spooled = b"".join(path.read_bytes() for path in (control / "spool").glob("*.tbs"))
    assert b"grad_norm" in spooled
    assert b"deterministic" in spooled
    assert not (root / "output").exists()


def test_wrong_parameters_are_all_named_and_nothing_is_left_behind(tmp_path: Path, corpus: Path) -> None:
    root = tmp_path / "wrong"
    _params(root, lr="3e-4", stepz=3)
    assert _end(_start(root, corpus, ranks=1)) == [2]
    text = (root / "0.err").read_text()
    assert "params.lr" in text
    assert "params.stepz" in text
    assert "Traceback" not in text
    assert sorted(path.name for path in root.iterdir()) == ["0.err", "0.out", "params.json"]
