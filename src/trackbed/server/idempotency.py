"""`Idempotency-Key` on POST: the same key of the same actor on the same route is answered once and for all, 7 days long.

A key is noted before its request is worked on, its answer before it is sent. A key whose answer is not known, because
the server died in between, is refused (`outcome_unknown`) rather than worked on twice.
"""

from typing import Any

from blake3 import blake3
from litestar import Request, Response
from sqlalchemy import Column, Index, Integer, LargeBinary, Table, Text, delete, select, update

from trackbed.access import Login
from trackbed.base.errors import BadInput, Conflict
from trackbed.db import Tx, metadata, upsert
from trackbed.domain.scope import SYSTEM
from trackbed.server.app import App

KEPT_US = 7 * 86400 * 1_000_000
LARGEST = 1 << 20  # bytes of an answer that is kept

answer_kept = Table(
    "idempotency_key",
    metadata,
    Column("actor", Text, primary_key=True),
    Column("route", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("asked", Text, nullable=False),  # BLAKE3 of path, query and body
    Column("status", Integer, nullable=False),  # 0: being worked on
    Column("media", Text, nullable=False, default=""),
    Column("body", LargeBinary, nullable=False, default=b""),
    Column("server_us", Integer, nullable=False),  # start of the server that took it up
    Column("created_us", Integer, nullable=False),
    Index("idempotency_key_by_age", "created_us"),
)

Place = tuple[str, str, str]


async def recall(request: Request[Any, Any, Any]) -> Response[bytes] | None:
    """Return the answer that this key has already got; None where the request is to be worked on.

    Raises:
        Conflict: `idempotency_mismatch`, `idempotency_running`, `outcome_unknown`.
    """
    key = request.headers.get("idempotency-key", "")
    login: Login | None = getattr(request.state, "login", None)
    if request.method != "POST" or not key or login is None:
        return None
    if len(key) > 200:
        raise BadInput("idempotency_key_long", most=200)
    app: App = request.app.state.trackbed
    place = (login.scope.actor.id, str(request.scope.get("path_template", request.url.path)), key)
    asked = blake3(request.scope["raw_path"] + b"?" + request.scope["query_string"] + b"\n" + await request.body())
    row = await app.db.awrite(lambda tx: _take(tx, place, asked.hexdigest(), app.started_us), actor=SYSTEM.actor)
    if row is None:
        request.scope["trackbed_idempotency"] = place  # pyright: ignore[reportGeneralTypeIssues] - our own key
        return None
    if row.asked != asked.hexdigest():
        raise Conflict("idempotency_mismatch", key=key)
    if not row.status:
        raise Conflict("idempotency_running" if row.server_us == app.started_us else "outcome_unknown", key=key)
    return Response(
        row.body, status_code=row.status, media_type=row.media or None, headers={"Idempotent-Replayed": "true"}
    )


def _at(place: Place) -> Any:
    table = answer_kept
    return (table.c.actor == place[0]) & (table.c.route == place[1]) & (table.c.key == place[2])


def _take(tx: Tx, place: Place, asked: str, server_us: int) -> Any:
    """Note the key; return the row that stood there already."""
    tx.execute(delete(answer_kept).where(answer_kept.c.created_us < tx.now_us - KEPT_US))
    row = tx.one(select(answer_kept).where(_at(place)))
    if row is not None:
        return row
    values = {
        "actor": place[0], "route": place[1], "key": place[2], "asked": asked, "status": 0, "media": "",
        "body": b"", "server_us": server_us, "created_us": tx.now_us,
    }  # fmt: skip
    tx.execute(upsert(answer_kept, values, key=["actor", "route", "key"]))
    return None


async def keep(app: App, place: Place, *, status: int, media: str, body: bytes) -> None:
    """Keep an answer before it is sent. Only what succeeded: a request that failed may be tried again."""
    if 200 <= status < 300 and len(body) <= LARGEST:
        stmt = update(answer_kept).where(_at(place)).values(status=status, media=media, body=body)
    else:
        stmt = delete(answer_kept).where(_at(place))
    await app.db.awrite(lambda tx: tx.execute(stmt).rowcount, actor=SYSTEM.actor)
