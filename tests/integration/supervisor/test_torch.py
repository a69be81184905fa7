"""An unmodified DDP script, by our ranks and by torchrun's; one of torchrun's ranks killed."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.torch, pytest.mark.timeout(240)]

DDP = Path(__file__).resolve().parents[3] / "examples" / "ddp-script" / "train.py"
PARAMS = {"lr": 0.01, "steps": 40, "save_every": 20}


@pytest.mark.parametrize(("launcher", "program"), [("rank_per_card", "python"), ("process_per_node", "torchrun")])
def test_a_ddp_script_trains_and_saves(bed: Any, server: Any, launcher: str, program: str) -> None:
    tree = bed.tree(train__py=DDP.read_text())
    report = bed.run(f"{program} train.py", tree=tree, cards=2, launcher=launcher, params=PARAMS, timeout_s=120)
    assert report.cause == "done", report.evidence
    assert any(b"world 2" in line for line in server.lines())
    assert [c["step"] for c in server.of("checkpoints")] == [20, 40]
    assert server.of("outputs")[-1]["entries"][0]["kind"] == "model"


def test_a_rank_killed_below_torchrun_is_killed_not_a_users_error(bed: Any, server: Any) -> None:
    tree = bed.tree(train__py=DDP.read_text().replace("torch.manual_seed(17)", "print('PID', os.getpid(), flush=True)"))
    slow = PARAMS | {"steps": 100_000}
    attempt = bed.start("torchrun train.py", tree=tree, cards=2, launcher="process_per_node", params=slow)
    bed.until(lambda: any(b"step 20" in line for line in server.lines()), timeout_s=90, attempt=attempt)
    pids = [int(line.split()[1]) for line in server.lines() if line.startswith(b"PID")]
    assert len(pids) == 2
    os.kill(pids[1], signal.SIGKILL)
    report = bed.wait(attempt, timeout_s=60)
    assert report.cause == "killed", report.evidence
