"""Triggers: what starts a pipeline by itself, and what came of it."""

from typing import Literal

import msgspec

from trackbed.wire.reviews import ReviewView
from trackbed.wire.runs import RunView, SubmitRequest, TreeFacts

TriggerKind = Literal["git", "github", "gitlab", "gitea", "dataset"]


class TriggerRequest(msgspec.Struct, kw_only=True, omit_defaults=True):
    """`pipeline`: a registered spec with its tree; without one `.trackbed/pipeline.yaml` of the pushed commit.

    `remote`: where a forge's code is fetched from (https). `status_url`: the forge's API, for the result; `token_env`: name of
    a variable of the server's that starts with TRACKBED_FORGE_TOKEN.
    """

    name: str
    kind: TriggerKind
    space: str = "default"
    branch: str = "*"  # pattern
    dataset: str = ""  # of kind dataset: pattern of names
    remote: str = ""
    status_url: str = ""  # https://api.github.com, https://gitlab.example/api/v4, https://gitea.example/api/v1
    token_env: str = ""
    pipeline: SubmitRequest | None = None
    version: int = 0  # of the trigger that the writer saw; 0: there is none yet


class TriggerView(msgspec.Struct, kw_only=True, omit_defaults=True):
    id: str
    name: str
    kind: TriggerKind
    space: str = "default"
    branch: str = "*"
    dataset: str = ""
    remote: str = ""
    status_url: str = ""
    token_env: str = ""
    registered: bool = False  # it has a spec of its own
    owner: str = ""
    version: int = 0
    created_us: int = 0
    hook_url: str = ""  # where a forge sends to
    secret: str = ""  # told once, in the answer to the one who set it


class DeliveryView(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One push or dataset version that came in. `state`: waiting → started → done, or failed, or skipped."""

    id: str
    trigger: str
    state: Literal["waiting", "started", "done", "failed", "skipped"]
    commit: str = ""
    branch: str = ""
    by: str = ""  # whom the forge names
    dataset: str = ""
    run_id: str = ""
    run: str = ""
    result: str = ""  # state of the run, or why there is none
    told: str = ""  # what the forge was told last, or why it could not be
    created_us: int = 0


class PushReport(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A git hook tells of a push; the code of the commit is in the store already."""

    commit: str
    tree: TreeFacts
    branch: str = ""


class HookReply(msgspec.Struct, kw_only=True, omit_defaults=True):
    delivery: str = ""
    state: str = ""
    ignored: str = ""  # why nothing was started


class CommitView(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Everything that is known of a commit: what was started for it, runs of its code, reviews."""

    commit: str
    deliveries: list[DeliveryView] = []
    runs: list[RunView] = []
    reviews: list[ReviewView] = []
