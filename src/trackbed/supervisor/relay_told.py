"""What ranks said of a run through MLflow: spooled before it is answered, and remembered so that they can read it back.

The memory is a view, not the record: bounded, and lost with the supervisor. What was said lies in the spool.
"""

import threading
from array import array
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trackbed.base.entropy import new_id
from trackbed.base.errors import BadInput, StorageFull
from trackbed.client.spool import Writer
from trackbed.formats import spool
from trackbed.tracking.facts_spelled import native, spelled
from trackbed.wire.mlflow import CLIENT, RUN_NAME, RUN_USER, Document, Point, later, pairs, shown_point, some

MOST_REMEMBERED = 50_000  # metrics, params or tags of one run; the server still has what is forgotten here
OPEN_FILES = 64  # spool files of child runs that stay open


class Spooler:
    """Appends frames of a job and of its child runs, each run in files of its own."""

    def __init__(self, folder: Path, *, run: str, attempt: int) -> None:
        self._folder, self._run, self._attempt = folder, run, attempt
        self._open: OrderedDict[str, Writer] = OrderedDict()
        self._made = sum(1 for _ in folder.glob("mlflow-*.tbs"))
        self._lock = threading.Lock()

    def points(self, run: str, points: Sequence[Point]) -> None:
        names = list(dict.fromkeys(point.key for point in points))
        at = {name: place for place, name in enumerate(names)}
        columns = spool.Metrics(
            names,
            array("I", [at[point.key] for point in points]),
            array("q", [point.step for point in points]),
            array("q", [point.ts_ms * 1000 for point in points]),
            array("d", [point.value for point in points]),
        )
        self._append(run, spool.METRICS, spool.encode_metrics(columns), len(points))

    def params(self, run: str, params: Mapping[str, str]) -> None:
        document = {name: native(value) for name, value in params.items()}
        self._append(run, spool.PARAMS, spool.encode_document(document), len(document))

    def file(self, run: str, said: Document) -> None:
        self._append(run, spool.FILE, spool.encode_document(said))

    def do(self, run: str, what: str, body: Document) -> None:
        """Leave a request for the server to do when it comes to it."""
        self._append(run, spool.MLFLOW, spool.encode_document({"do": what, "body": body}))

    def close(self) -> None:
        with self._lock:
            for writer in self._open.values():
                writer.close()
            self._open.clear()

    def _append(self, run: str, kind: str, body: bytes, n: int = 1) -> None:
        if len(body) > spool.MAX_BODY_BYTES:
            raise BadInput("mlflow_body_large", bytes=len(body), most=spool.MAX_BODY_BYTES)
        with self._lock:
            try:
                self._writer(run).append(kind, body, n)
            except OSError as fault:
                raise StorageFull("relay_spool_unwritable", what=fault.strerror or str(fault)) from None

    def _writer(self, run: str) -> Writer:
        writer = self._open.get(run)
        if writer is None:
            # By number: a run's later file is shipped after its earlier one. MLflow knows no ranks: all are one stream.
            writer = self._open[run] = Writer(
                self._folder / f"mlflow-{self._made:07d}.tbs", run=run, rank=0,
                attempt=self._attempt if run == self._run else 1, client=CLIENT + new_id("x")[2:],
            )  # fmt: skip
            self._made += 1
            if len(self._open) > OPEN_FILES:
                oldest = next(name for name in self._open if name != self._run)
                self._open.pop(oldest).close()
        self._open.move_to_end(run)
        return writer


@dataclass
class Told:
    """One run as its ranks know it. `child`: made by this job beside its own."""

    run_id: str
    experiment_id: str
    owner: str
    started_ms: int
    name: str = ""
    child: bool = False
    status: str = "RUNNING"
    ended_ms: int = 0
    params: dict[str, str] = field(default_factory=dict[str, str])
    tags: dict[str, str] = field(default_factory=dict[str, str])
    gone_tags: set[str] = field(default_factory=set[str])
    latest: dict[str, Point] = field(default_factory=dict[str, Point])

    @property
    def artifact_root(self) -> str:
        return f"mlflow-artifacts:/{self.experiment_id}/{self.run_id}/artifacts"

    def note_points(self, points: Sequence[Point]) -> None:
        for point in points:
            known = self.latest.get(point.key)
            if known is None or later(point, known):
                self.latest[point.key] = point
        _bound(self.latest)

    def check_params(self, params: Mapping[str, str]) -> None:
        """Raise BadInput `mlflow_param_changed` where one has another value already."""
        for name, value in params.items():
            stands = self.params.get(name, value)
            if stands != value:
                raise BadInput("mlflow_param_changed", name=name, stands=stands[:200], given=value[:200])

    def note_params(self, params: Mapping[str, str]) -> None:
        self.params |= params
        _bound(self.params)

    def note_tags(self, tags: Mapping[str, str]) -> None:
        self.name = tags.get(RUN_NAME, self.name)
        self.tags |= tags
        self.gone_tags -= tags.keys()
        _bound(self.tags)

    def forget_tag(self, key: str) -> None:
        self.tags.pop(key, None)
        self.gone_tags.add(key)

    def info(self) -> Document:
        return some(
            run_id=self.run_id, run_uuid=self.run_id, run_name=self.name, experiment_id=self.experiment_id,
            user_id=self.owner, status=self.status, start_time=self.started_ms, end_time=self.ended_ms or None,
            artifact_uri=self.artifact_root, lifecycle_stage="active",
        )  # fmt: skip

    def view(self, server: Document | None = None) -> Document:
        """Return the run as MLflow answers it: what the server says, and what was said here since."""
        known: Document = (server or {}).get("data", {})
        params = {one["key"]: one["value"] for one in known.get("params", [])} | self.params
        tags = {one["key"]: one["value"] for one in known.get("tags", []) if one["key"] not in self.gone_tags}
        tags = {RUN_USER: self.owner} | tags | self.tags | {RUN_NAME: self.name}
        points = {one["key"]: one for one in known.get("metrics", [])}
        for key, point in self.latest.items():
            there = points.get(key)
            if there is None or later(point, _point_of(there)):
                points[key] = shown_point(point)
        data = {"metrics": [points[key] for key in sorted(points)], "params": pairs(params), "tags": pairs(tags)}
        empty: Document = {"inputs": {"dataset_inputs": [], "model_inputs": []}, "outputs": {"model_outputs": []}}
        return {**empty, **(server or {}), "info": {**(server or {}).get("info", {}), **self.info()}, "data": data}


def given_params(params: Mapping[str, object]) -> dict[str, str]:
    """Return the params of a spec as MLflow spells them."""
    return {name: spelled(value) for name, value in params.items()}


def _point_of(said: Document) -> Point:
    return Point(said["key"], int(said["step"]), int(said["timestamp"]), float(said["value"]))


def _bound(entries: dict[str, str] | dict[str, Point]) -> None:
    while len(entries) > MOST_REMEMBERED:
        del entries[next(iter(entries))]
