"""What a tag of a metric shows: across runs by time, along the versions of a dataset, nothing behind a wall."""

from array import array
from typing import Any

import msgspec
import pytest
from sqlalchemy import update

from trackbed.base.entropy import new_id
from trackbed.base.errors import BadInput
from trackbed.domain.scope import Role
from trackbed.formats import spool
from trackbed.formats.spool import Header, Metrics
from trackbed.server.flows.metric_tags import along
from trackbed.tracking import metric_tags, runs
from trackbed.tracking.ingest import ingest, prepare
from trackbed.tracking.runs_tables import run as run_table
from trackbed.wire.spec import DataPin


def log(world: Any, run_id: str, key: str, value: float, **said: Any) -> None:
    columns = Metrics([key], array("I", [0]), array("q", [1]), array("q", [1]), array("d", [value]))
    client = new_id("cli")
    frames = b"".join(
        [
            spool.encode(
                Header(kind=spool.DEFINE, attempt=1, client=client, seq=1), spool.encode_document({"key": key, **said})
            ),
            spool.encode(Header(kind=spool.METRICS, attempt=1, client=client, seq=2), spool.encode_metrics(columns)),
        ]
    )
    prepared = prepare(frames)
    world.write(lambda tx: ingest(tx, runs.get(tx, run_id), prepared), world.ann.actor)


def used(world: Any, run_id: str, version: int) -> None:
    def work(tx: Any) -> None:
        pin = DataPin(ref=f"corpus@{version}", dataset="corpus", version=version)
        spec = msgspec.structs.replace(runs.spec_of(runs.get(tx, run_id)), data={"x": pin})
        tx.execute(update(run_table).where(run_table.c.id == run_id).values(spec=runs.to_json(spec)))

    world.write(work, world.ann.actor)


def ask(world: Any, tag: str, scope: Any = None, **where: str) -> list[tuple[str, str, Any, int]]:
    found = world.app.db.read(lambda tx: along(tx, scope or world.ann, tag, **where))
    return [(one.ref, one.key, one.best if one.best is not None else one.last, one.version) for one in found]


def test_a_tag_shows_its_metrics_across_runs_and_along_the_versions_of_a_dataset(world: Any) -> None:
    ids = []
    for n, version in enumerate((2, 1)):
        run_id = world.submit().run_id
        log(world, run_id, "eval/loss", 1.0 - n / 10, goal="min", tags=["quality", "a'b"])
        log(world, run_id, "speed", 5.0, tags=["qualit"])
        used(world, run_id, version)
        world.clock.advance(60.0)
        ids.append(run_id)
    assert ask(world, "quality") == [("demo#1", "eval/loss", 1.0, 0), ("demo#2", "eval/loss", 0.9, 0)]
    assert ask(world, "quality", dataset="corpus") == [("demo#2", "eval/loss", 0.9, 1), ("demo#1", "eval/loss", 1.0, 2)]
    assert ask(world, "quality", dataset="other") == []
    assert ask(world, "quality", model="none") == []
    assert ask(world, "a'b")[0][1] == "eval/loss"
    assert ask(world, "qualit")[0][1] == "speed"
    found = world.app.db.read(lambda tx: metric_tags.tags(tx, world.ann))
    assert [(one.tag, one.keys, one.runs) for one in found] == [
        ("a'b", ["eval/loss"], 2), ("qualit", ["speed"], 2), ("quality", ["eval/loss"], 2),
    ]  # fmt: skip


def test_tags_behind_a_wall_are_not_shown_and_two_axes_are_refused(world: Any) -> None:
    log(world, world.submit().run_id, "eval/loss", 1.0, tags=["quality"])
    stranger = world.person("eve", Role.MAINTAINER, space_id="spc_other")
    assert ask(world, "quality", stranger) == []
    assert world.app.db.read(lambda tx: metric_tags.tags(tx, stranger)) == []
    with pytest.raises(BadInput):
        ask(world, "quality", dataset="a", model="b")
