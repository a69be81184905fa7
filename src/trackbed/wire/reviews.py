"""Reviews: what is protected, who asked for what to be looked at, who said what."""

from typing import Literal

import msgspec

from trackbed.wire.code import FileDiff

Kind = Literal["path", "template", "alias", "quota"]


class ProtectionRequest(msgspec.Struct, kw_only=True, omit_defaults=True):
    """`pattern`: paths of the code (`configs/*.yaml`), names of templates, `model@alias`, names of quotas.

    `approvals` by others than the author are needed; by `approvers`, or anybody who may write. `version`: of the rule that
    the writer saw; 0: there is none yet.
    """

    kind: Kind
    pattern: str
    space: str = "default"
    approvals: int = 1
    approvers: list[str] = []
    version: int = 0


class ProtectionView(msgspec.Struct, kw_only=True, omit_defaults=True):
    kind: Kind
    pattern: str
    space: str = "default"
    approvals: int = 1
    approvers: list[str] = []
    version: int = 0
    created_us: int = 0
    created_by: str = ""


class ReviewItem(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One protected thing with the digest that is looked at: BLAKE3 of a file, `b3:` of a template or model version."""

    kind: Kind
    subject: str
    digest: str


class ReviewRequest(msgspec.Struct, kw_only=True, omit_defaults=True):
    """`tree`: a tree in the store with the files of the items, so that they can be read by the reviewer."""

    items: list[ReviewItem]
    title: str = ""
    description: str = ""
    space: str = "default"
    commit: str = ""
    branch: str = ""
    remote: str = ""
    tree: str = ""


class ReviewWord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What somebody said. `digest`: of the review that they saw."""

    person: str
    decision: Literal["comment", "approve", "reject", "withdraw"]
    text: str = ""
    digest: str = ""
    time_us: int = 0


class WordRequest(msgspec.Struct, kw_only=True, omit_defaults=True):
    """`digest`: of the review as it was read; the decision holds for nothing else."""

    digest: str
    text: str = ""


class ReviewView(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Items never change; `digest` is that of all of them."""

    id: str
    state: Literal["open", "approved", "rejected", "withdrawn"]
    title: str
    description: str = ""
    space: str = "default"
    author: str = ""
    commit: str = ""
    branch: str = ""
    remote: str = ""
    digest: str = ""
    tree: str = ""
    items: list[ReviewItem] = []
    words: list[ReviewWord] = []
    needed: int = 0  # approvals that are still missing
    approvers: list[str] = []  # who may approve; empty: anybody who may write in the space, but not the author
    created_us: int = 0
    updated_us: int = 0
    files: list[FileDiff] = []  # against what was approved last; only where one review is asked for


class CheckRequest(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Are these all reviewed? Things that nobody protects are."""

    items: list[ReviewItem]
    space: str = "default"
    commit: str = ""


class CheckReply(msgspec.Struct, kw_only=True, omit_defaults=True):
    """`missing` is empty where everything protected was approved; `reviews` are those that approved it."""

    missing: list[ReviewItem] = []
    protections: list[ProtectionView] = []  # that ask for what is missing
    reviews: list[ReviewView] = []
    open: list[ReviewView] = []  # that would approve what is missing
