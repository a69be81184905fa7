"""One stream of changes for a browser: Server-Sent Events, resumable by journal position."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from litestar import Request, get
from litestar.params import Parameter
from litestar.response import Stream

from trackbed.access import authenticate
from trackbed.base.errors import BadInput, TooLarge, TrackbedError
from trackbed.db import ReadTx
from trackbed.domain.scope import Permission, Scope
from trackbed.server.app import App
from trackbed.server.auth import credentials
from trackbed.server.stream import BATCH, Change, Subscriber, changes_of
from trackbed.tracking import runs

MOST_TOPICS = 200
REPLAY = 5000  # journal rows that a returning client is told one by one; behind more it is told to ask anew
BEAT = Change("", {})


@dataclass(eq=False)
class View:
    """What one stream shows. `scope` is judged anew at each heartbeat; publishing threads read it."""

    topics: frozenset[str]
    scope: Scope

    def wants(self, change: Change) -> bool:
        if change.topic not in self.topics:
            return False
        return change.topic == "queue" or self.scope.may(Permission.READ, change.space_id)


@get("/api/v1/stream", opt={"permission": Permission.SIGNED_IN})
async def stream(
    request: Request[Any, Any, Any],
    trackbed_app: App,
    who: Scope,
    topics: str = "runs",
    after: int | None = None,
    last_event_id: Annotated[str, Parameter(header="Last-Event-ID")] = "",
) -> Stream:
    """Changes of `run:RUN`, `runs`, `queue`, from now or from behind a position of the journal."""
    start = int(last_event_id) if last_event_id.isdecimal() else after
    view = View(await trackbed_app.db.aread(lambda tx: named_topics(tx, who, topics)), who)
    secret, _ = credentials(request)
    return Stream(
        events(trackbed_app, view, secret, start),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


def named_topics(tx: ReadTx, scope: Scope, topics: str) -> frozenset[str]:
    """Return the topics with run references resolved to ids.

    Raises:
        BadInput: `topic_unknown`. TooLarge: `topics_too_many`. NotFound: a run behind a wall.
    """
    wanted = {topic.strip() for topic in topics.split(",") if topic.strip()}
    if len(wanted) > MOST_TOPICS:
        raise TooLarge("topics_too_many", count=len(wanted), most=MOST_TOPICS)
    found: set[str] = set()
    for topic in wanted:
        noun, _, ref = topic.partition(":")
        if noun == "run" and ref:
            found.add(f"run:{runs.resolve(tx, scope, ref).id}")
        elif topic in ("runs", "queue"):
            found.add(topic)
        else:
            raise BadInput("topic_unknown", topic=topic)
    return frozenset(found)


async def events(app: App, view: View, secret: str, after: int | None) -> AsyncIterator[bytes]:
    """The body of a stream: what was missed, then what happens; ends when the client is too slow or signed out."""
    subscriber = app.publisher.subscribe(view.wants)
    try:
        position = await app.db.aread(app.db.head_in)
        yield b"retry: 2000\n\n"
        if after is not None and after < position:
            async for chunk in _missed(app, view, after, position):
                yield chunk
        else:
            yield b": here\n\n"
        async for chunk in _live(app, view, subscriber, secret, position):
            yield chunk
    finally:
        app.publisher.unsubscribe(subscriber)


async def _missed(app: App, view: View, after: int, until: int) -> AsyncIterator[bytes]:
    told = 0
    while after < until:
        rows = await app.db.aread(lambda tx, behind=after: app.db.events_in(tx, behind, limit=BATCH))
        if not rows:
            return
        for row in rows:
            for change in changes_of(row) if row.id <= until else ():
                if view.wants(change):
                    told += 1
                    yield framed(change)
        after = rows[-1].id
        if told > REPLAY:
            yield b"event: reset\nid: %d\ndata: {}\n\n" % until
            return


async def _live(app: App, view: View, subscriber: Subscriber, secret: str, position: int) -> AsyncIterator[bytes]:
    every_s = app.settings.heartbeat_s
    judged_s = app.clock.monotonic_s()
    while True:
        try:
            change = await asyncio.wait_for(subscriber.changes.get(), every_s)
        except TimeoutError:
            change = BEAT
        if app.clock.monotonic_s() - judged_s >= every_s or change is BEAT:
            if not await _still_welcome(app, view, secret):
                return
            judged_s = app.clock.monotonic_s()
        if change is None:
            return
        if change is BEAT:
            yield b": beat\n\n"
        elif (change.id == 0 or change.id > position) and view.wants(change):
            yield framed(change)


async def _still_welcome(app: App, view: View, secret: str) -> bool:
    try:
        view.scope = (await app.db.aread(lambda tx: authenticate(tx, secret))).scope
    except TrackbedError:
        return False
    return True


def framed(change: Change) -> bytes:
    """Return a change as it stands in the stream; one that is not kept has no id."""
    position = b"id: %d\n" % change.id if change.id else b""
    return b"event: change\n" + position + b"data: " + msgspec.json.encode(change.data) + b"\n\n"


routes: list[Any] = [stream]
