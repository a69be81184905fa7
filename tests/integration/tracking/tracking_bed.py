"""Makes runs, writes frames into them as ranks would, and reads them back."""

import itertools
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from trackbed.base.entropy import new_id
from trackbed.base.ids import FileDigest
from trackbed.db import Database, Tx
from trackbed.domain.scope import SYSTEM
from trackbed.formats import spool
from trackbed.formats.spool import Header, Line, Metrics
from trackbed.storage import Store
from trackbed.storage.local import LocalStore
from trackbed.testing.database import KINDS, new_database
from trackbed.tracking import facts, metrics_sealing, runs
from trackbed.tracking.ingest import Ingested, ingest, prepare
from trackbed.tracking.ingest_summary import Known, Unread
from trackbed.tracking.metrics_sealed import seals_of
from trackbed.tracking.metrics_view import Curves, View, known
from trackbed.tracking.runs_tables import run as run_table

Point = tuple[str, int, int, float]  # key, step, time, value
_numbers = itertools.count(1)


class Rank:
    """One writer of one attempt. `frames` turns what it says into bytes; each is sent when the test sends it."""

    def __init__(self, *, attempt: int = 1, inc: int = 0, rank: int = 0, run: str = "") -> None:
        self.client = new_id("cli")
        self.attempt, self.inc, self.rank, self.run = attempt, inc, rank, run
        self.seq = 0

    def frame(self, kind: str, body: bytes, n: int = 1) -> bytes:
        self.seq += 1
        header = Header(
            kind=kind, run=self.run, attempt=self.attempt, inc=self.inc, rank=self.rank, client=self.client, seq=self.seq,
            ts=1_700_000_000_000_000 + self.seq, n=n,
        )  # fmt: skip
        return spool.encode(header, body)

    def points(self, points: Sequence[Point]) -> bytes:
        keys = list(dict.fromkeys(key for key, *_ in points))
        at = {key: index for index, key in enumerate(keys)}
        columns = Metrics(
            keys, array("I", [at[key] for key, *_ in points]), array("q", [step for _, step, _, _ in points]),
            array("q", [ts for _, _, ts, _ in points]), array("d", [value for *_, value in points]),
        )  # fmt: skip
        return self.frame(spool.METRICS, spool.encode_metrics(columns), len(points))

    def lines(self, *lines: Line) -> bytes:
        return self.frame(spool.LOG, spool.encode_lines(lines), len(lines))

    def say(self, kind: str, document: Any) -> bytes:
        return self.frame(kind, spool.encode_document(document))


class Bed:
    def __init__(self, db: Database, store: Store) -> None:
        self.db = db
        self.store = store
        self.curves = Curves(store)

    def run(self, *, params: dict[str, Any] | None = None, **columns: Any) -> str:
        run_id = new_id("run")

        def make(tx: Tx) -> None:
            values: dict[str, Any] = {
                "id": run_id, "space_id": "spc_1", "space": "default", "project_id": "prj_1", "project": "demo",
                "number": next(_numbers), "owner_id": "per_1", "owner": "ada", "state": "running", "spec": "{}",
                "created_us": tx.now_us, "started_us": tx.now_us, "attempt": 1,
            }  # fmt: skip
            tx.execute(run_table.insert().values(values | columns))
            facts.begin(tx, run_id, params or {})

        self.db.write(make, actor=SYSTEM.actor)
        return run_id

    def send(self, run_id: str, *frames: bytes, attempt: int | None = None) -> Ingested:
        prepared = prepare(b"".join(frames))
        sealed: Known | None = None
        while True:
            try:
                return self.db.write(
                    lambda tx, given=sealed: ingest(tx, runs.get(tx, run_id), prepared, attempt=attempt, sealed=given),
                    actor=SYSTEM.actor,
                    lane="bulk",
                )
            except Unread as need:
                sealed = self.db.read(lambda tx, need=need: known(self.curves.reader, seals_of(tx, need.run_id), need))

    def view(self, run_id: str) -> View:
        return self.db.read(lambda tx: self.curves.view(tx, run_id))

    def seal(self, run_id: str, *, most: int = 0) -> int:
        """Seal what is loose, as the loop does; return how many points were sealed."""
        loose = self.db.read(lambda tx: metrics_sealing.take(tx, run_id, most=most or metrics_sealing.OBJECT_POINTS))
        if not len(loose.step):
            return 0
        made = metrics_sealing.build(run_id, loose)
        self.store.put_blobs([(FileDigest(made.digest), made.body)])
        self.db.write(lambda tx: metrics_sealing.keep(tx, made), actor=SYSTEM.actor)
        return made.points

    def merge(self, run_id: str) -> None:
        """Make one object of all that the run has."""
        seals = self.db.read(lambda tx: seals_of(tx, run_id))
        if len(seals) > 1:
            made = metrics_sealing.merge(run_id, self.curves.reader, seals)
            self.store.put_blobs([(FileDigest(made.digest), made.body)])
            self.db.write(lambda tx: metrics_sealing.keep(tx, made), actor=SYSTEM.actor)

    def sweep(self, run_id: str) -> None:
        while self.db.write(
            lambda tx: metrics_sealing.sweep(tx, run_id, metrics_sealing.SLICE_BYTES), actor=SYSTEM.actor
        ):
            pass


@pytest.fixture(params=[KINDS[0], pytest.param(KINDS[1], marks=pytest.mark.slow)])
def bed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bed]:
    database = new_database(request.param, tmp_path)
    yield Bed(database, LocalStore(tmp_path / "store"))
    database.close()
