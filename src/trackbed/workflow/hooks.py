"""A forge's webhook: is it really from there, and what was pushed. Pure.

GitHub signs the body with HMAC-SHA256 (`X-Hub-Signature-256`), Gitea too (`X-Gitea-Signature`); GitLab sends the shared
token itself (`X-Gitlab-Token`). Nothing of a body is believed before that.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import msgspec

TOO_OLD_S = 3600.0  # of a push whose forge says when it was
_SKEW_S = 300.0


@dataclass(frozen=True)
class Push:
    """`delivery` names this sending; `commit` is empty where a branch was deleted."""

    delivery: str
    branch: str
    commit: str
    by: str = ""
    time_s: float = 0.0  # when it was pushed, where the forge says so


def is_genuine(kind: str, headers: Mapping[str, str], body: bytes, secret: str) -> bool:
    """Tell whether who sent this knows the secret. `headers` have lower-case names. Compares in constant time."""
    if kind == "gitlab":
        return hmac.compare_digest(headers.get("x-gitlab-token", "").encode(), secret.encode())
    expected = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    if kind == "gitea":
        given = headers.get("x-gitea-signature", "")
    elif kind == "github":
        scheme, _, given = headers.get("x-hub-signature-256", "").partition("=")
        given = given if scheme == "sha256" else ""
    else:
        return False
    return hmac.compare_digest(given.encode(), expected.encode())


def push_of(kind: str, headers: Mapping[str, str], body: bytes) -> Push | str:
    """Return the push that a genuine body tells of, or why it is none: `not_a_push`, `not_a_branch`, `unreadable`."""
    event = headers.get({"github": "x-github-event", "gitlab": "x-gitlab-event", "gitea": "x-gitea-event"}[kind], "")
    if event.lower().removesuffix(" hook") != "push":
        return "not_a_push"
    try:
        told: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return "unreadable"
    if not isinstance(told, dict):
        return "unreadable"
    values = cast(dict[str, Any], told)
    ref, commit = _text(values.get("ref")), _text(values.get("after")).lower()
    if not ref.startswith("refs/heads/"):
        return "not_a_branch"
    if len(commit) not in (40, 64) or commit.strip("0123456789abcdef"):
        return "unreadable"
    delivery = next((headers[name] for name in _DELIVERY[kind] if headers.get(name)), "")
    return Push(
        delivery[:200], ref.removeprefix("refs/heads/"), commit if commit.strip("0") else "", _by(values), _time(values)
    )


_DELIVERY = {
    "github": ("x-github-delivery",),
    "gitlab": ("idempotency-key", "x-gitlab-event-uuid"),
    "gitea": ("x-gitea-delivery",),
}


def is_timely(push: Push, now_s: float) -> bool:
    """A recorded push that is sent again later is no push. Where the forge tells no time, this says nothing."""
    return not push.time_s or now_s - TOO_OLD_S <= push.time_s <= now_s + _SKEW_S


def _by(values: dict[str, Any]) -> str:
    for name in ("pusher", "sender"):
        who = values.get(name)
        if isinstance(who, dict):
            person = cast(dict[str, Any], who)
            found = _text(person.get("name")) or _text(person.get("login")) or _text(person.get("username"))
            if found:
                return found[:200]
    return _text(values.get("user_username"))[:200] or _text(values.get("user_name"))[:200]


def _time(values: dict[str, Any]) -> float:
    repository = values.get("repository")
    pushed = cast(dict[str, Any], repository).get("pushed_at") if isinstance(repository, dict) else None
    return float(pushed) if isinstance(pushed, int) and not isinstance(pushed, bool) else 0.0


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
