"""Reviews and what asks for them."""

import asyncio
from typing import Annotated, Any

from litestar import delete, get, post, put
from litestar.params import Parameter

from trackbed.db import ReadTx
from trackbed.domain.scope import Permission, Scope
from trackbed.server.app import App
from trackbed.server.flows import reviewed
from trackbed.server.flows.conflicts import open_conflicts
from trackbed.sources import reviews
from trackbed.tracking import runs
from trackbed.wire.conflicts import Conflict
from trackbed.wire.reviews import (
    CheckReply,
    CheckRequest,
    ProtectionRequest,
    ProtectionView,
    ReviewRequest,
    ReviewView,
    WordRequest,
)

READ = {"permission": Permission.READ}
WRITE = {"permission": Permission.WRITE}
MAINTAIN = {"permission": Permission.MAINTAIN}
DECISIONS = ("approve", "reject", "comment", "withdraw")


@get("/api/v1/protections", opt=READ, name="list_protections", operation_id="list_protections")
async def rules(trackbed_app: App, who: Scope, space: str = "", kind: str = "") -> list[ProtectionView]:
    """What is protected: paths of code, templates, aliases, quotas."""
    return await trackbed_app.db.aread(lambda tx: reviews.protections(tx, who, space, kind))


@put("/api/v1/protections", opt=MAINTAIN, name="protect", operation_id="protect")
async def protect(data: ProtectionRequest, trackbed_app: App, who: Scope) -> ProtectionView:
    """Set a rule, if it stands as its writer saw it."""
    return await trackbed_app.db.awrite(lambda tx: reviews.protect(tx, who, data), actor=who.actor)


@delete("/api/v1/protections", opt=MAINTAIN, name="unprotect", operation_id="unprotect")
async def unprotect(trackbed_app: App, who: Scope, kind: str, pattern: str, space: str = "default") -> None:
    """Take a rule away."""
    await trackbed_app.db.awrite(lambda tx: reviews.unprotect(tx, who, kind, pattern, space=space), actor=who.actor)


@post("/api/v1/reviews", opt=WRITE, name="request_review", operation_id="request_review")
async def ask(data: ReviewRequest, trackbed_app: App, who: Scope) -> ReviewView:
    """Ask somebody else to look at protected things."""
    return await asyncio.to_thread(reviewed.request, trackbed_app, who, data)


@get("/api/v1/reviews", opt=READ, name="list_reviews", operation_id="list_reviews")
async def list_all(
    trackbed_app: App,
    who: Scope,
    space: str = "",
    standing: Annotated[str, Parameter(query="state")] = "",
    commit: str = "",
    limit: int = 100,
) -> list[ReviewView]:
    """Reviews, the newest first; of a commit by its first digits."""

    def read(tx: ReadTx) -> list[ReviewView]:
        return reviews.list_reviews(tx, who, where=space, state=standing, commit=commit, limit=limit)

    return await trackbed_app.db.aread(read)


@post("/api/v1/reviews/check", opt=READ, status_code=200, name="check_reviews", operation_id="check_reviews")
async def check(data: CheckRequest, trackbed_app: App, who: Scope) -> CheckReply:
    """Whether everything protected among these was approved: the required check of a merge."""
    return await trackbed_app.db.aread(lambda tx: reviews.check(tx, who, data.items, space=data.space))


@get("/api/v1/reviews/{review:str}", opt=READ, name="show_review", operation_id="show_review")
async def show(trackbed_app: App, who: Scope, review: str) -> ReviewView:
    """One review with its files, against what was approved of them last."""
    return await asyncio.to_thread(reviewed.show_with_files, trackbed_app, who, review)


def _decision(decision: str) -> Any:
    @post(
        f"/api/v1/reviews/{{review:str}}/{decision}", opt=WRITE, status_code=200, name=f"{decision}_review",
        operation_id=f"{decision}_review",
    )  # fmt: skip
    async def say(data: WordRequest, trackbed_app: App, who: Scope, review: str) -> ReviewView:
        return await trackbed_app.db.awrite(
            lambda tx: reviews.say(tx, who, review, decision, digest=data.digest, text=data.text), actor=who.actor
        )

    return say


@get("/api/v1/runs/{run:str}/reviews", opt=READ, name="run_reviews", operation_id="run_reviews")
async def of_run(trackbed_app: App, who: Scope, run: str) -> list[ReviewView]:
    """The reviews that stand behind the code of a run."""

    def read(tx: ReadTx) -> list[ReviewView]:
        return reviews.list_reviews(tx, who, run_id=runs.resolve(tx, who, run).id, limit=1000)

    return await trackbed_app.db.aread(read)


@get("/api/v1/conflicts", opt=READ, name="list_conflicts", operation_id="list_conflicts")
async def conflicts(trackbed_app: App, who: Scope, mine: bool = False) -> list[Conflict]:
    """What open branches and reviews touch both."""
    return await trackbed_app.db.aread(lambda tx: open_conflicts(tx, who, mine=mine))


routes: list[Any] = [
    conflicts, rules, protect, unprotect, ask, list_all, check, show, *[_decision(one) for one in DECISIONS], of_run,
]  # fmt: skip
