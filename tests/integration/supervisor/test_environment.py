"""What differs from the pinned environment when an attempt starts: named, refused, or flagged where the site says so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from trackbed.sources import packs
from trackbed.sources.environment import record_of
from trackbed.sources.locking import lock_of, record_of_lock, this_python
from trackbed.testing.wheels import wheel

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="packs are for Linux")


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """An interpreter of its own with one small package."""
    made = wheel(tmp_path / "wheels", "tb-beta", "1.0", {"tb_beta.py": "x = 1\n"})
    target = tmp_path / "venv"
    for words in (
        ["venv", "--no-project", str(target)],
        ["pip", "install", "--offline", "--python", str(target), str(made)],
    ):
        done = subprocess.run([packs.uv.find(), *words, "--no-config"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return target / "bin" / "python"


def installed(python: Path) -> Path:
    return python.parent.parent / "lib" / f"python{this_python()}" / "site-packages" / "tb_beta.py"


def test_an_edited_file_of_a_package_is_named_and_refuses_the_attempt(bed: Any, python: Path) -> None:
    record = msgspec.to_builtins(record_of(python))
    assert record.get("modified", []) == []
    assert bed.run("python -c 'import tb_beta'", environment=record).cause == "done"
    installed(python).write_text("x = 2\n")
    bed.server.reports.clear()
    report = bed.run("echo never", environment=record)
    assert (report.cause, report.evidence["code"]) == ("environment", "environment_drift")
    assert "tb_beta.py" in report.evidence["params"]["changes"]


def test_a_site_that_flags_lets_it_run_and_tells_the_server(bed: Any, server: Any, python: Path) -> None:
    record = msgspec.to_builtins(record_of(python))
    installed(python).unlink()
    report = bed.run("sleep 1; echo ran", environment=record, environment_drift="flag")
    assert report.cause == "done" and b"ran" in server.lines()
    told = [one["environment"] for one in server.leases if one.get("environment")]
    assert told and any("tb_beta.py" in change and "gone" in change for change in told[0]["drift"])
    assert told[0]["surroundings"]["os"]
    assert any(b"not as it was pinned" in line for line in server.lines("trackbed"))
    assert not server.leases[-1].get("environment"), "once it was heard, it is not said again"


def test_a_secret_of_the_node_is_masked_on_the_record(bed: Any, server: Any, python: Path) -> None:
    record = msgspec.to_builtins(record_of(python))
    bed.run("sleep 1", environment=record, env={"HF_TOKEN": "hf_abcdef", "OMP_NUM_THREADS": "3"})
    (variables,) = {
        msgspec.json.encode(one["environment"]["surroundings"]["variables"])
        for one in server.leases
        if one.get("environment")
    }
    assert b"hf_abcdef" not in variables and b"HF_TOKEN" in variables and b'"OMP_NUM_THREADS":"3"' in variables


def test_a_lock_without_its_pack_never_runs_in_something_else(
    bed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel(tmp_path / "shelf", "tb-beta", "1.0", {"tb_beta.py": ""})
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "shelf"))
    (tmp_path / "requirements.txt").write_text("tb-beta\n")
    lock = lock_of(tmp_path / "requirements.txt")
    document = msgspec.to_builtins(record_of_lock(lock))
    report = bed.run("echo never", environment=document)
    assert (report.cause, report.evidence["code"]) == ("environment", "environment_not_packed")
    packs.build(lock, packs.interpreter_for(lock.python), tmp_path / "pack", log=tmp_path / "log")
    pack = str(bed.store.put_tree(tmp_path / "pack").digest)
    bed.server.reports.clear()
    assert (
        bed.run(
            "python -c 'import tb_beta, sys; assert sys.prefix.endswith(\"environment\")'",
            environment=document,
            pack=pack,
        ).cause
        == "done"
    )
