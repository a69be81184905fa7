"""The required check: a real bare repository refuses a push of protected files that nobody else approved."""

import os
import subprocess
import sys
from pathlib import Path

from server_process import Server, server

__all__ = ["server"]


def run(folder: Path, *command: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


def env_of(server: Server, token: str, home: Path) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "TRACKBED"))}
    return plain | {
        "TRACKBED_URL": server.url, "TRACKBED_TOKEN": token, "TRACKBED_HOME": str(home), "TRACKBED_LANG": "en",
        "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "bob",
        "GIT_AUTHOR_EMAIL": "b@x", "GIT_COMMITTER_NAME": "bob", "GIT_COMMITTER_EMAIL": "b@x",
    }  # fmt: skip


def test_a_push_to_a_protected_branch_needs_an_approval_by_somebody_else(server: Server, tmp_path: Path) -> None:
    bob = env_of(server, server.person("bob", default="member"), tmp_path / "bob")
    cid = env_of(server, server.person("cid", default="member"), tmp_path / "cid")
    hook = env_of(server, server.person("hook", default="viewer"), tmp_path / "hook")
    server.json("PUT", "/api/v1/protections", json={"kind": "path", "pattern": "configs/*", "approvers": ["cid"]})

    def trackbed(env: dict[str, str], *args: str, folder: Path = tmp_path) -> subprocess.CompletedProcess[str]:
        return run(folder, sys.executable, "-m", "trackbed", *args, env=env)

    run(tmp_path, "git", "init", "-q", "--bare", "-b", "main", "central.git", env=bob)
    done = trackbed(bob, "review", "hook", "--install", "central.git")
    assert done.returncode == 0, done.stderr
    assert trackbed(bob, "review", "hook", "--install", "central.git").returncode == 0, "the same again is fine"
    # A hook runs with the environment of who pushes over a path; a forge gives it one of its own.
    push_env = bob | {"TRACKBED_TOKEN": hook["TRACKBED_TOKEN"]}

    run(tmp_path, "git", "clone", "-q", "central.git", "work", env=bob)
    work = tmp_path / "work"
    (work / "configs").mkdir()
    (work / "configs" / "train.yaml").write_text("lr: 1\n")
    (work / "free.py").write_text("x = 1\n")
    run(work, "git", "checkout", "-q", "-b", "main", env=bob)
    run(work, "git", "add", "-A", env=bob)
    run(work, "git", "commit", "-qm", "one", env=bob)

    refused = run(work, "git", "push", "-q", "origin", "main", env=push_env)
    assert refused.returncode != 0
    assert "configs/train.yaml" in refused.stderr and "by cid" in refused.stderr
    assert "trackbed review request" in refused.stderr and "free.py" not in refused.stderr
    assert run(work, "git", "push", "-q", "origin", "main:side", env=push_env).returncode == 0, "others are free"

    asked = trackbed(bob, "--json", "review", "request", "--title", "first rate", folder=work)
    assert asked.returncode == 0, asked.stderr
    review = server.json("GET", "/api/v1/reviews?state=open")[0]["id"]
    assert trackbed(bob, "review", "approve", review).returncode == 5, "not by its author"
    assert run(work, "git", "push", "-q", "origin", "main", env=push_env).returncode != 0
    shown = trackbed(cid, "review", "show", review)
    assert "+lr: 1" in shown.stdout and "first rate" in shown.stdout
    assert trackbed(cid, "review", "approve", review, "-m", "good").returncode == 0
    passed = run(work, "git", "push", "-q", "origin", "main", env=push_env)
    assert passed.returncode == 0, passed.stderr

    head = run(work, "git", "rev-parse", "HEAD", env=bob).stdout.strip()
    kept = server.json("GET", f"/api/v1/reviews?commit={head}")
    assert [(one["state"], one["words"][-1]["person"], one["words"][-1]["text"]) for one in kept] == [
        ("approved", "cid", "good")
    ]

    (work / "configs" / "train.yaml").write_text("lr: 9\n")
    run(work, "git", "commit", "-qam", "two", env=bob)
    assert run(work, "git", "push", "-q", "origin", "main", env=push_env).returncode != 0, "other bytes"
    run(work, "git", "revert", "--no-edit", "HEAD", env=bob)
    assert run(work, "git", "push", "-q", "origin", "main", env=push_env).returncode == 0, "the approved bytes again"

    away = push_env | {"TRACKBED_URL": "http://127.0.0.1:9"}
    (work / "free.py").write_text("x = 2\n")
    run(work, "git", "commit", "-qam", "three", env=bob)
    assert run(work, "git", "push", "-q", "origin", "main", env=away).returncode != 0, "no answer is no approval"


def test_protected_templates_and_aliases_need_an_approval_over_http(server: Server, tmp_path: Path) -> None:
    eve = server.person("eve", default="maintainer")
    server.json("PUT", "/api/v1/protections", json={"kind": "template", "pattern": "base*"})
    text = "name: base\nspec: {run: 'python t.py'}\n"
    refused = server.ask("POST", "/api/v1/templates", json={"text": text}, token=eve)
    assert (refused.status_code, refused.json()["code"]) == (403, "review_missing")
    (tmp_path / "base.yaml").write_text(text)
    env = env_of(server, eve, tmp_path / "eve")
    asked = run(
        tmp_path, sys.executable, "-m", "trackbed", "--json", "review", "request", "--template", "base.yaml", env=env
    )
    assert asked.returncode == 0, asked.stderr
    (review,) = [one for one in server.json("GET", "/api/v1/reviews?state=open") if one["author"] == "eve"]
    server.json("POST", f"/api/v1/reviews/{review['id']}/approve", json={"digest": review["digest"]})
    assert server.json("POST", "/api/v1/templates", json={"text": text}, token=eve)["version"] == 1
    other = server.ask("POST", "/api/v1/templates", json={"text": text + "description: x\n"}, token=eve)
    assert other.status_code == 403
    assert server.json("GET", "/api/v1/templates/base")["latest"] == 1, "nothing of it was made"
