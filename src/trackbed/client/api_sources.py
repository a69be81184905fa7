"""The parts of a `Client` that speak of sources: code, reviews, conflicts, triggers."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import urlencode

import msgspec

from trackbed.base.entropy import new_id
from trackbed.base.errors import BadInput, Conflict
from trackbed.base.home import home
from trackbed.base.ids import FileDigest
from trackbed.client.connection import Connection, part
from trackbed.client.pull import pull
from trackbed.client.push import Progress, push
from trackbed.formats.tree import decode_listing, encode_listing, show
from trackbed.sources.capture import capture
from trackbed.storage.scan import Scan, tree_info
from trackbed.wire.code import CodeDiff
from trackbed.wire.reviews import (
    CheckReply,
    CheckRequest,
    ProtectionRequest,
    ProtectionView,
    ReviewItem,
    ReviewRequest,
    ReviewView,
    WordRequest,
)
from trackbed.wire.runs import RunDetail, TreeFacts
from trackbed.wire.triggers import CommitView, DeliveryView, PushReport, TriggerRequest, TriggerView


class Code:
    """The code of runs."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def checkout(self, run: str, target: Path | str, *, on_progress: Progress | None = None) -> TreeFacts:
        """Write the tree of a run into an empty folder, verified: what its job found.

        Raises:
            Conflict: `run_without_tree`; `storage_target_taken`: something is in the folder already.
        """
        detail = self._connection.get(f"/api/v1/runs/{part(run)}", RunDetail)
        if detail.tree is None or not detail.tree.digest:
            raise Conflict("run_without_tree", ref=detail.run.ref)
        pull(self._connection, detail.tree.digest, Path(target), on_progress=on_progress)
        return detail.tree

    def diff(self, before: str, after: str, *, path: str = "") -> CodeDiff:
        """Return what the code of a run changed since an earlier one, and who brought each line."""
        return self._connection.get(f"/api/v1/runs/{part(after)}/code-diff", CodeDiff, {"before": before, "path": path})


class Reviews:
    """What is protected, and who looked at it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def rules(self, space: str = "", kind: str = "") -> list[ProtectionView]:
        return self._connection.get("/api/v1/protections", list[ProtectionView], {"space": space, "kind": kind})

    def protect(self, rule: ProtectionRequest) -> ProtectionView:
        """Set a rule; `rule.version` is that of the rule as it was seen.

        Raises:
            Conflict: `protection_moved`.
        """
        return self._connection.put("/api/v1/protections", ProtectionView, rule)

    def unprotect(self, kind: str, pattern: str, space: str = "default") -> None:
        query = urlencode({"kind": kind, "pattern": pattern, "space": space})
        self._connection.delete(f"/api/v1/protections?{query}")

    def request(self, asked: ReviewRequest) -> ReviewView:
        return self._connection.post("/api/v1/reviews", ReviewView, asked, key=new_id("idm"))

    def request_code(
        self, folder: Path, paths: Sequence[str] = (), *, title: str = "", description: str = "", space: str = "default",
        allow: Sequence[str] = (),
    ) -> ReviewView | None:  # fmt: skip
        """Ask for a review of files of a working folder: of these paths, or of all that is protected and not approved yet.

        Returns None where nothing is missing.

        Raises:
            BadInput: `review_path_unknown`: a path names nothing in the folder.
        """
        found = capture(folder, allow=allow, cache=home() / "client" / "code")
        entries = [entry for entry in decode_listing(found.listing) if entry.kind == "f"]
        if paths:
            chosen = [entry for entry in entries if any(_names(path, show(entry.path)) for path in paths)]
            unknown = [path for path in paths if not any(_names(path, show(entry.path)) for entry in chosen)]
            if unknown:
                raise BadInput("review_path_unknown", paths=", ".join(unknown), folder=str(folder))
        else:
            items = [ReviewItem(kind="path", subject=show(entry.path), digest=entry.digest) for entry in entries]
            missing = {one.subject for one in self.check(items, space=space).missing}
            chosen = [entry for entry in entries if show(entry.path) in missing]
            if not chosen:
                return None
        listing = encode_listing(chosen)
        tree = Scan(
            tree_info(listing, chosen),
            listing,
            {FileDigest(e.digest): found.files[FileDigest(e.digest)] for e in chosen},
        )
        push(self._connection, tree, space=space)
        return self.request(ReviewRequest(
            items=[ReviewItem(kind="path", subject=show(entry.path), digest=entry.digest) for entry in chosen],
            title=title, description=description, space=space, commit=found.facts.commit, branch=found.facts.branch,
            remote=found.facts.remote, tree=tree.info.digest,
        ))  # fmt: skip

    def all(self, *, space: str = "", state: str = "", commit: str = "", limit: int = 100) -> list[ReviewView]:
        query = {"space": space, "state": state, "commit": commit, "limit": limit}
        return self._connection.get("/api/v1/reviews", list[ReviewView], query)

    def of_run(self, run: str) -> list[ReviewView]:
        return self._connection.get(f"/api/v1/runs/{part(run)}/reviews", list[ReviewView])

    def show(self, review: str) -> ReviewView:
        return self._connection.get(f"/api/v1/reviews/{part(review)}", ReviewView)

    def say(self, review: str, decision: str, *, digest: str, text: str = "") -> ReviewView:
        """Approve, reject, comment or withdraw what has this digest.

        Raises:
            Conflict: `review_moved`: the review is of something else.
        """
        body = WordRequest(digest=digest, text=text)
        return self._connection.post(f"/api/v1/reviews/{part(review)}/{decision}", ReviewView, body, key=new_id("idm"))

    def check(self, items: Sequence[ReviewItem], *, space: str = "default", commit: str = "") -> CheckReply:
        """Return which of these are protected and not approved."""
        body = CheckRequest(items=list(items), space=space, commit=commit)
        return self._connection.post("/api/v1/reviews/check", CheckReply, body)


def _names(path: str, found: str) -> bool:
    bare = path.removeprefix("./").rstrip("/")
    return found == bare or found.startswith(f"{bare}/") or fnmatchcase(found, path)


class Triggers:
    """What starts pipelines by itself."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def all(self, space: str = "") -> list[TriggerView]:
        return self._connection.get("/api/v1/triggers", list[TriggerView], {"space": space})

    def put(self, asked: TriggerRequest) -> TriggerView:
        """Set a trigger; the answer holds the secret of its webhook, once."""
        return self._connection.put("/api/v1/triggers", TriggerView, asked)

    def drop(self, name: str, space: str = "default") -> None:
        self._connection.delete(f"/api/v1/triggers/{part(name)}?{urlencode({'space': space})}")

    def log(self, trigger: str = "", *, commit: str = "", space: str = "") -> list[DeliveryView]:
        query = {"trigger": trigger, "commit": commit, "space": space}
        return self._connection.get("/api/v1/deliveries", list[DeliveryView], query)

    def commit(self, commit: str) -> CommitView:
        """Everything that is known of a commit."""
        return self._connection.get(f"/api/v1/commits/{part(commit)}", CommitView)

    def pushed(
        self, name: str, folder: Path, *, commit: str, branch: str = "", remote: str = "", space: str = "default"
    ) -> DeliveryView:  # fmt: skip
        """Tell of a push, with the code of the commit as it lies in a folder without git."""
        found = capture(folder)
        push(self._connection, found.scan, space=space)
        tree = msgspec.structs.replace(found.facts, commit=commit, branch=branch, remote=remote)
        return self._connection.post(
            f"/api/v1/triggers/{part(name)}/pushed?{urlencode({'space': space})}", DeliveryView,
            PushReport(commit=commit, branch=branch, tree=tree), key=new_id("idm"),
        )  # fmt: skip
