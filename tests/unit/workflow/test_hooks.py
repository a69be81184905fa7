"""Webhooks of forges: believed only with their signature, and only what they are."""

import hashlib
import hmac
import json
from typing import Any

import pytest

from trackbed.workflow.hooks import Push, is_genuine, is_timely, push_of

SECRET = "s" * 64
COMMIT = "ab" * 20
PUSHER: dict[str, Any] = {"name": "bob"}


def body(**more: Any) -> bytes:
    return json.dumps({"ref": "refs/heads/main", "after": COMMIT, "pusher": PUSHER, **more}).encode()


def signed(data: bytes, secret: str = SECRET) -> str:
    return hmac.new(secret.encode(), data, hashlib.sha256).hexdigest()


def test_each_forge_proves_itself_in_its_own_way() -> None:
    data = body()
    assert is_genuine("github", {"x-hub-signature-256": f"sha256={signed(data)}"}, data, SECRET)
    assert is_genuine("gitea", {"x-gitea-signature": signed(data)}, data, SECRET)
    assert is_genuine("gitlab", {"x-gitlab-token": SECRET}, data, SECRET)


@pytest.mark.parametrize(
    ("kind", "headers"),
    [
        ("github", {}),
        ("github", {"x-hub-signature-256": ""}),
        ("github", {"x-hub-signature-256": signed(body())}),
        ("github", {"x-hub-signature": "sha1=" + "0" * 40}),
        ("github", {"x-hub-signature-256": f"sha256={signed(body(), 'other')}"}),
        ("github", {"x-hub-signature-256": f"sha256={signed(body(x=1))}"}),
        ("github", {"x-hub-signature-256": "sha256=é"}),
        ("github", {"x-gitlab-token": SECRET}),
        ("gitea", {"x-gitea-signature": ""}),
        ("gitlab", {}),
        ("gitlab", {"x-gitlab-token": SECRET[:-1]}),
        ("git", {"x-gitlab-token": SECRET}),
        ("dataset", {"x-hub-signature-256": f"sha256={signed(body())}"}),
    ],
)
def test_without_the_right_proof_nothing_is_genuine(kind: str, headers: dict[str, str]) -> None:
    assert not is_genuine(kind, headers, body(), SECRET)


def test_a_push_is_read_from_each_forge() -> None:
    assert push_of(
        "github", {"x-github-event": "push", "x-github-delivery": "d1"}, body(repository={"pushed_at": 17})
    ) == (Push("d1", "main", COMMIT, "bob", 17.0))
    gitlab = json.dumps({"ref": "refs/heads/f/x", "after": COMMIT, "user_username": "cid"}).encode()
    assert push_of("gitlab", {"x-gitlab-event": "Push Hook", "x-gitlab-event-uuid": "d2"}, gitlab) == (
        Push("d2", "f/x", COMMIT, "cid")
    )
    assert push_of("gitea", {"x-gitea-event": "push", "x-gitea-delivery": "d3"}, body()) == Push(
        "d3", "main", COMMIT, "bob"
    )
    gone = push_of("github", {"x-github-event": "push"}, body(after="0" * 40))
    assert isinstance(gone, Push) and gone.commit == ""


@pytest.mark.parametrize(
    ("headers", "data", "why"),
    [
        ({"x-github-event": "ping"}, body(), "not_a_push"),
        ({}, body(), "not_a_push"),
        ({"x-github-event": "push"}, body(ref="refs/tags/v1"), "not_a_branch"),
        ({"x-github-event": "push"}, body(after="HEAD; rm -rf /"), "unreadable"),
        ({"x-github-event": "push"}, body(after=["x"]), "unreadable"),
        ({"x-github-event": "push"}, b"[]", "unreadable"),
        ({"x-github-event": "push"}, b"\xff", "unreadable"),
        ({"x-github-event": "push"}, b"{", "unreadable"),
    ],
)
def test_what_is_no_push_of_a_branch_is_named(headers: dict[str, str], data: bytes, why: str) -> None:
    assert push_of("github", headers, data) == why


def test_a_push_from_long_ago_is_not_timely() -> None:
    assert is_timely(Push("d", "main", COMMIT, time_s=10_000), 10_010)
    assert not is_timely(Push("d", "main", COMMIT, time_s=10_000), 14_000)
    assert not is_timely(Push("d", "main", COMMIT, time_s=10_000), 9_000)
    assert is_timely(Push("d", "main", COMMIT), 9_000), "a forge that tells no time"
