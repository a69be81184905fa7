"""Must hold 7 and 10: wrong specs leave nothing behind; a job's secrets open nothing else."""

import json
import stat
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from e2e_harness import Installation, project_from

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

BAD = """\
project: Bad Name!
nmae: typo
params: {lr: 3e-4}
data: {corpus: missing@latest}
resources: {cards: 64, time_limit: soon}
priority: sometimes
retries: {user_error: many}
"""


def test_a_wrong_spec_names_every_fault_with_its_line_and_leaves_nothing(inst: Installation, tmp_path: Path) -> None:
    folder = project_from("shell", tmp_path)
    (folder / "bad.yaml").write_text(BAD)
    before = inst.json("runs")
    done = inst.cli("submit", "bad.yaml", cwd=folder, check=False)
    assert done.returncode == 2, done
    text = done.stdout + done.stderr
    for needle in (
        "project",
        "nmae",
        "time_limit",
        "priority",
        "retries",
        "run",
        "line 1",
        "line 2",
        "line 5",
        "line 6",
        "line 7",
    ):
        assert needle in text, f"{needle!r} missing in:\n{text}"
    assert "Traceback" not in text
    assert inst.json("runs") == before


def test_faults_that_only_the_server_can_see_come_in_one_message_too(inst: Installation, tmp_path: Path) -> None:
    folder = project_from("shell", tmp_path)
    done = inst.cli(
        "submit",
        "trackbed.yaml",
        "--set",
        "resources.cards=64",
        "--set",
        "data.corpus=missing@latest",
        cwd=folder,
        check=False,
    )
    text = done.stdout + done.stderr
    assert done.returncode in (2, 3)
    assert "missing" in text and "64" in text


def test_a_jobs_tokens_write_to_no_other_run_and_read_no_other_space(inst: Installation, tmp_path: Path) -> None:
    folder = project_from("shell", tmp_path)
    other = inst.submit(folder)
    inst.wait(other)
    run = inst.submit(folder, "run=env > $TRACKBED_OUTPUT/env.txt; sleep 4")
    inst.until(lambda: inst.state(run) == "running", what="running")
    assignment = json.loads((inst.attempt_folders()[-1] / "assignment.json").read_text())
    assert assignment["run_id"] == run
    base, token = f"http://127.0.0.1:{inst.port}/api/v1", assignment["token"]
    assert call(base + f"/runs/{other}/frames", token, b"") in (403, 404)
    assert call(base + f"/runs/{other}/stop", token, b"{}") in (401, 403, 404)
    assert call(base + "/runs", token, b"{}") in (401, 403)
    assert call(base + "/tokens", token, b"{}") in (401, 403)
    assert call(base + "/people", token) in (401, 403)
    inst.wait(run)
    assert call(base + f"/runs/{run}/frames", token, b"") in (401, 403), "the token dies with the attempt"
    env = dict(
        line.split("=", 1)
        for line in (inst.attempt_folders()[-1] / "output" / "env.txt").read_text().splitlines()
        if "=" in line
    )
    assert "TRACKBED_HOME" not in env
    assert not [v for v in env.values() if v.startswith(("tbp_", "tba_"))], "no person's token, no attempt token"


def call(url: str, token: str, body: bytes | None = None) -> int:
    request = urllib.request.Request(
        url, data=body, headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        return int(refused.code)


def test_database_and_secrets_are_closed_to_other_users(inst: Installation) -> None:
    for path in inst.home.rglob("*"):
        if path.name in ("credentials.json", "assignment.json", "trackbed.sqlite3") or path.suffix in (
            ".sqlite3",
            ".key",
        ):
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    assert stat.S_IMODE(inst.home.stat().st_mode) & 0o077 == 0


def test_the_trust_domain_is_said_by_up_and_by_doctor(inst: Installation) -> None:
    assert "trust domain" in inst.log.read_text()
    assert "trust domain" in inst.cli("doctor", check=False).stdout


def test_the_host_header_is_checked(inst: Installation) -> None:
    request = urllib.request.Request(f"http://127.0.0.1:{inst.port}/healthz", headers={"Host": "evil.example"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=10)
    assert refused.value.code in (400, 403, 421)
