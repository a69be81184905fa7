"""One installation, used by its commands: what a person types, what comes back, with which exit status."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.e2e

SCRIPT = """\
import json, os, pathlib, sys, time
params = json.load(open(os.environ["TRACKBED_PARAMS"]))
print("损失", params["lr"], flush=True)
print("trouble", file=sys.stderr, flush=True)
corpus = pathlib.Path(os.environ["TRACKBED_DATA_CORPUS"])
pathlib.Path(os.environ["TRACKBED_OUTPUT"], "sum.txt").write_text(str(sum(len(p.read_bytes()) for p in corpus.rglob("*.txt"))))
time.sleep(params.get("sleep", 0))
sys.exit(params.get("exit", 0))
"""
SPEC = """\
project: demo
name: story
params: {lr: 3e-4}
data: {corpus: words@latest}
resources: {cards: 1}
run: python job.py
"""


class Home:
    """A home folder, and the command with it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("TRACKBED_", "LC_", "LANG"))}
        self.env = kept | {"TRACKBED_HOME": str(root / "home"), "LANG": "C.UTF-8", "TRACKBED_CARDS": "2"}

    def run(
        self, *words: str, status: int = 0, cwd: Path | None = None, stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "trackbed", *words], capture_output=True, text=True, env=self.env, cwd=cwd or self.root, input=stdin, timeout=120
        )  # fmt: skip
        assert done.returncode == status, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def json(self, *words: str, status: int = 0, cwd: Path | None = None) -> Any:
        return json.loads(self.run(*words, "--json", status=status, cwd=cwd).stdout)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    home = Home(tmp_path_factory.mktemp("cli"))
    words, code = home.root / "words", home.root / "code"
    words.mkdir()
    code.mkdir()
    (words / "a.txt").write_text("hello")
    (code / "job.py").write_text(SCRIPT)
    (code / "trackbed.yaml").write_text(SPEC)
    home.run("up", "--detach", "--port", "0")
    try:
        yield home
    finally:
        home.run("down")


@pytest.fixture(scope="module")
def finished(home: Home) -> str:
    """The reference of a run that has finished."""
    home.run("data", "add", "words", "words", "-m", "first")
    reply = home.json("submit", cwd=home.root / "code")
    assert reply["ref"].startswith("demo#")
    assert home.run("wait", reply["ref"], "--timeout", "90s").stdout.startswith(reply["ref"])
    return str(reply["ref"])


def test_up_twice_is_refused_with_the_way_out(home: Home) -> None:
    assert "trackbed down" in home.run("up", "--detach", status=4).stderr


def test_the_account_of_the_server_is_signed_in(home: Home) -> None:
    me = home.json("whoami")
    assert me["admin"] is True
    assert (home.root / "home/client/credentials.json").stat().st_mode & 0o777 == 0o600


def test_status_doctor_nodes_and_queue_answer(home: Home) -> None:
    assert home.json("status")["cards_total"] == 2
    checks = {check["name"]: check["verdict"] for check in home.json("doctor")}
    assert checks["server"] == "ok" and "bad" not in checks.values()
    assert [card["state"] for card in home.json("nodes")[0]["cards"]] == ["free", "free"]
    assert home.json("queue") == []
    assert "Nobody waits" in home.run("queue").stderr


def test_the_same_data_makes_no_second_version_and_comes_back_equal(home: Home, finished: str) -> None:
    assert "already holds exactly this" in home.run("data", "add", "words", "words").stdout
    (home.root / "words" / "b.txt").write_text("more")
    assert home.json("data", "add", "words", "words")["version"] == 2
    (home.root / "words" / "b.txt").unlink()
    assert [one["version"] for one in home.json("data", "show", "words")["versions"]][-2:] in ([1, 2], [2, 1])
    home.run("data", "pull", "words@1", "--to", "back")
    assert [path.name for path in (home.root / "back").iterdir()] == ["a.txt"]
    assert "words" in home.run("data", "list").stdout


def test_a_finished_run_is_shown_with_all_that_it_had(home: Home, finished: str) -> None:
    shown = home.run("show", finished).stdout
    assert all(word in shown for word in ("Finished", "words@1", "python job.py", "lr=0.0003", "sum.txt", "local:"))
    assert home.json("runs", "tags has 'x'") == []
    assert [view["ref"] for view in home.json("runs", "params.lr < 0.001")] == [finished]
    assert finished in home.run("runs", "--columns", "params.lr").stdout


def test_its_lines_come_by_rank_level_and_text(home: Home, finished: str) -> None:
    assert "损失 0.0003" in home.run("logs", finished, "--rank", "0").stdout
    assert home.run("logs", finished, "--grep", "trouble").stdout.count("\n") == 1
    lines = [json.loads(line) for line in home.run("logs", finished, "--json").stdout.splitlines()]
    assert {"损失 0.0003", "trouble"} <= {line["text"] for line in lines}


def test_its_outputs_are_fetched_and_explained(home: Home, finished: str) -> None:
    assert home.run("artifacts", "get", finished, "sum.txt", "--to", "out").stdout.strip() == "out"
    assert (home.root / "out").read_text() == "5"
    assert home.run("artifacts", "get", finished, "nope", status=3).stderr
    told = home.run("explain", finished).stdout
    assert "Submitted" in told and "Finished" in told
    assert "words@1" in home.run("lineage", finished).stdout


def test_a_failed_run_ends_with_status_1_and_its_cause(home: Home, finished: str) -> None:
    done = home.run("submit", "--set", "params.exit=3", "--follow", status=1, cwd=home.root / "code")
    assert "Failed" in done.stdout and "3" in done.stdout
    assert "trouble" in done.stdout
    home.run("wait", "-", status=1)


def test_a_run_is_stopped(home: Home, finished: str) -> None:
    ref = home.json("submit", "--set", "params.sleep=60", cwd=home.root / "code")["ref"]
    deadline = time.monotonic() + 60
    while home.json("show", ref)["run"]["state"] != "running" and time.monotonic() < deadline:
        time.sleep(0.3)
    assert "Stopped" in home.run("stop", ref, "--grace", "5s", "--wait", "-m", "enough").stdout
    assert home.run("retry", finished, status=4).stderr


def test_every_fault_of_a_spec_comes_at_once_and_nothing_is_left_behind(home: Home, finished: str) -> None:
    before = home.json("runs")
    wrong = home.root / "code" / "wrong.yaml"
    wrong.write_text(
        'name: a b\nzebra: 1\ndata: {corpus: nothing@1}\nresources: {cards: 99}\nparams: {lr: "3e-4"}\nrun: t {{params.rl}}\nseed: "3"\n'
    )
    told = home.run("submit", "wrong.yaml", status=2, cwd=home.root / "code").stderr
    for number, piece in enumerate(
        ("is not a name", "no field zebra", "nothing", "99", None, "params.rl", "quotes away"), 1
    ):
        assert piece is None or any(f"(line {number})" in line and piece in line for line in told.splitlines()), (
            number,
            told,
        )
    wrong.unlink()
    assert home.json("runs") == before


def test_a_dry_run_checks_all_and_makes_nothing(home: Home, finished: str) -> None:
    before = home.json("runs")
    assert "Nothing was submitted" in home.run("submit", "--dry-run", cwd=home.root / "code").stdout
    assert home.json("runs") == before


def test_a_token_is_shown_once_used_and_revoked(home: Home) -> None:
    made = home.json("token", "create", "--label", "ci", "--expires", "1h")
    assert made["secret"] not in home.run("token", "list").stdout
    url = home.json("status")["url"]
    other = Home(home.root / "other")
    other.root.mkdir()
    other.run("login", url, stdin=made["secret"] + "\n")
    assert other.json("whoami")["name"] == home.json("whoami")["name"]
    home.run("token", "revoke", made["id"])
    other.run("whoami", status=5)
    other.run("logout")
    other.run("logout", status=2)


def test_people_spaces_and_projects(home: Home, finished: str) -> None:
    assert "/login#" in home.run("people", "add", "grace").stdout
    assert "grace" in home.run("people", "list").stdout
    assert "demo" in home.run("project", "list").stdout
    home.run("space", "member", "default", "grace", "member")
    assert "grace" in home.run("space", "list").stdout
    assert "--accept-one-trust-domain" in home.run("space", "add", "walled", status=4).stderr


def test_what_does_not_exist_is_status_3(home: Home) -> None:
    for words in (
        ("show", "demo#999"),
        ("data", "show", "nope"),
        ("models", "show", "nope"),
        ("logs", "run_zzzzzzzzzzzzzzzz"),
    ):
        assert home.run(*words, status=3).stderr


def test_chinese_is_spoken_throughout(home: Home, finished: str) -> None:
    shown = home.run("show", finished, "--lang", "zh").stdout
    assert "数据" in shown and "环境" in shown
    assert "没有" in home.run("show", "demo#999", "--lang", "zh", status=3).stderr


def test_completion_knows_commands_words_and_options(home: Home) -> None:
    assert home.run("__complete", "su").stdout.split() == ["submit"]
    assert home.run("__complete", "data", "").stdout.split() == ["add", "list", "show", "pull"]
    assert "--follow" in home.run("__complete", "submit", "--f").stdout
    for shell in ("bash", "zsh", "fish"):
        assert "__complete" in home.run("completion", shell).stdout


def test_without_a_server_the_way_out_is_told(tmp_path: Path) -> None:
    lonely = Home(tmp_path)
    assert "trackbed up" in lonely.run("runs", status=5).stderr
    assert "trackbed up" in lonely.run("down", status=3).stderr
    assert (
        "Nothing listens at http://127.0.0.1:9" in lonely.run("runs", "--server", "http://127.0.0.1:9", status=6).stderr
    )
