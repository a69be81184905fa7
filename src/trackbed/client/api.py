"""Everything a person can do with a server, as a library: `trackbed.Client()`.

    client.submit("trackbed.yaml"); client.wait(run)          runs
    client.runs("metrics.loss < 2"); client.series(...)       reading
    client.data.add("corpus", "files/"); client.models.pull   data and models
    client.pool.queue(); client.people.tokens()               the pool, accounts

A run is named by any reference: `run_…`, `demo#17`, `demo/name`, a unique prefix, `-` (my last). Errors are the classes
of `trackbed.base.errors`. Loads httpx, so the SDK imports this at first use only.
"""

import math
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import httpx

from trackbed.base.entropy import new_id
from trackbed.base.errors import Unavailable
from trackbed.client import config
from trackbed.client.api_parts import Data, Models, People, Pool, Templates
from trackbed.client.api_sources import Code, Reviews, Triggers
from trackbed.client.connection import PATIENCE_S, Connection, encode, part
from trackbed.client.curves import ACCEPT, history_of, is_packed, series_of
from trackbed.client.environments import Docs, Doctor, Environments
from trackbed.client.portable import Portable
from trackbed.client.push import Progress
from trackbed.client.samples import Sample
from trackbed.client.samples import read as read_sample
from trackbed.client.submit import Again, Prepared, again, prepare
from trackbed.domain.states import TERMINAL
from trackbed.wire.access import Me
from trackbed.wire.compare import CompareRequest, Comparison, GroupComparison
from trackbed.wire.conflicts import Conflict
from trackbed.wire.marks import AnomaliesReply, MetricTag, StepsReply, TaggedValue
from trackbed.wire.runs import (
    ArtifactView,
    CloneView,
    EventView,
    ReproductionVerdict,
    RunDetail,
    RunPage,
    RunView,
    StatusView,
    SubmitReply,
    SubmitRequest,
    VerbRequest,
)
from trackbed.wire.series import (
    HistoryReply,
    KeyInfo,
    KeysReply,
    LogLine,
    LogPage,
    Point,
    Series,
    SeriesQuery,
    SeriesReply,
)
from trackbed.wire.spec import Spec
from trackbed.wire.trial import TrialRequest, TrialView

Verb = Literal["stop", "pause", "resume", "retry", "hold", "release"]

ENDED = frozenset(state.value for state in TERMINAL)
_POLL_S = (0.2, 2.0)


class Client:
    """A signed-in view of one server. Threads may share it."""

    def __init__(
        self,
        url: str = "",
        token: str = "",
        *,
        patience_s: float = PATIENCE_S,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Without a url: the environment, else what `trackbed up` or `trackbed login` left on this machine."""
        login = config.Login(config.clean(url), token) if url and token else config.need(url)
        self.connection = Connection(login, patience_s=patience_s, transport=transport)
        self.data = Data(self.connection)
        self.models = Models(self.connection)
        self.templates = Templates(self.connection)
        self.code = Code(self.connection)
        self.reviews = Reviews(self.connection)
        self.triggers = Triggers(self.connection)
        self.pool = Pool(self.connection)
        self.people = People(self.connection)
        self.environments = Environments(self.connection)
        self.doctor = Doctor(self.connection)
        self.docs = Docs(self.connection)
        self.portable = Portable(self.connection)

    @property
    def url(self) -> str:
        return self.connection.url

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.connection.close()

    def me(self) -> Me:
        return self.connection.get("/api/v1/me", Me)

    def status(self) -> StatusView:
        return self.connection.get("/api/v1/status", StatusView)

    # runs

    def submit(
        self, spec: Path | str | dict[str, Any] | Spec, *, sets: Sequence[str] = (), dry_run: bool = False,
        trial: TrialRequest | None = None, on_progress: Progress | None = None,
    ) -> SubmitReply:  # fmt: skip
        """Submit a spec file (a path), a dict in the form of the file, or a Spec; the working tree goes with it.

        Raises:
            BadInput: `spec_wrong` with every fault, those that the server found included.
        """
        return self.send(prepare(spec, sets), dry_run=dry_run, trial=trial, on_progress=on_progress)

    def send(
        self, prepared: Prepared | Again, *, dry_run: bool = False, trial: TrialRequest | None = None, on_progress: Progress | None = None
    ) -> SubmitReply:  # fmt: skip
        """Submit what was captured before."""
        return prepared.send(self.connection, dry_run=dry_run, trial=trial, on_progress=on_progress)

    def like(
        self, run: str, sets: Sequence[str] = (), *, fork: bool = False, checkpoint: str = "", model: str = ""
    ) -> Again:
        """Return a run to be sent again with other values: `client.send(client.like("demo#17", ["params.lr=1e-4"]))`.

        With `fork` it begins from a checkpoint of the run (a step or name; default the latest), or from `model`.
        """
        query = {"fork": fork, "checkpoint": checkpoint, "model": model}
        return again(self.connection.get(f"/api/v1/runs/{part(run)}/clone", CloneView, query), sets)

    def trial(self, run: str) -> TrialView:
        """Return the trial that was made for a run, or that it is.

        Raises:
            NotFound: `trial_none`.
        """
        return self.connection.get(f"/api/v1/runs/{part(run)}/trial", TrialView)

    def reproduce(self, run: str) -> SubmitReply:
        """Submit a run again from its record alone."""
        request = self.connection.get(f"/api/v1/runs/{part(run)}/reproduction", SubmitRequest)
        return self.connection.post("/api/v1/runs", SubmitReply, request, key=new_id("idm"))

    def verdict(self, run: str) -> ReproductionVerdict:
        """Return whether a run came out as the one it reproduces, and what differs.

        Raises:
            Conflict: `run_reproduces_nothing`.
        """
        return self.connection.get(f"/api/v1/runs/{part(run)}/reproduction/verdict", ReproductionVerdict)

    def run(self, run: str) -> RunDetail:
        """Return everything on the record but curves and logs."""
        return self.connection.get(f"/api/v1/runs/{part(run)}", RunDetail)

    def runs(
        self, filter: str = "", *, order_by: str = "", descending: bool = True, limit: int = 50, project: str = "",
        columns: Sequence[str] = (),
    ) -> list[RunView]:  # fmt: skip
        """Return the runs that fit, with the asked metrics and params filled in; newest first unless ordered."""
        found: list[RunView] = []
        cursor = ""
        while len(found) < limit:
            page = self.runs_page(
                filter, order_by=order_by, descending=descending, limit=min(limit - len(found), 200), project=project,
                columns=columns, cursor=cursor,
            )  # fmt: skip
            found += page.runs
            cursor = page.next
            if not cursor or not page.runs:
                break
        return found

    def runs_page(
        self, filter: str = "", *, order_by: str = "", descending: bool = True, limit: int = 50, project: str = "",
        columns: Sequence[str] = (), cursor: str = "",
    ) -> RunPage:  # fmt: skip
        query = {"filter": filter, "order_by": order_by, "descending": descending, "limit": limit, "project": project,
                 "columns": ",".join(columns), "cursor": cursor}  # fmt: skip
        page = self.connection.get("/api/v1/runs", RunPage, query)
        for view in page.runs:
            view.metrics = {key: number(value) for key, value in view.metrics.items()}
        return page

    def verb(self, run: str, verb: Verb, *, grace_s: float | None = None, message: str = "") -> RunView:
        """Stop, pause, resume, retry, hold or release a run; returns it as it is right after."""
        return self.connection.post(
            f"/api/v1/runs/{part(run)}/{verb}",
            RunView,
            VerbRequest(grace_s=grace_s, message=message),
            key=new_id("idm"),
        )

    def wait(
        self, run: str, *, until: Collection[str] = ENDED, timeout_s: float | None = None,
        on_look: Callable[[RunDetail], None] | None = None,
    ) -> RunDetail:  # fmt: skip
        """Return the run once it is in one of the states `until` (default: finished, failed or stopped).

        Raises:
            Unavailable: `wait_timeout`.
        """
        deadline = math.inf if timeout_s is None else time.monotonic() + timeout_s
        pause = _POLL_S[0]
        while True:
            detail = self.run(run)
            run = detail.run.id  # `-` and `project/name` may name another one later
            if on_look is not None:
                on_look(detail)
            if detail.run.state in until:
                return detail
            if time.monotonic() + pause > deadline:
                raise Unavailable("wait_timeout", run=detail.run.ref, state=detail.run.state, timeout_s=timeout_s)
            time.sleep(pause)
            pause = min(pause * 1.3, _POLL_S[1])

    def events(self, run: str, *, after: int = 0, limit: int = 500) -> list[EventView]:
        return self.connection.get(
            f"/api/v1/runs/{part(run)}/events", list[EventView], {"after": after, "limit": limit}
        )

    def conflicts(self, *, mine: bool = True) -> list[Conflict]:
        """Return what open branches and reviews touch both: mine and those of others, or all."""
        return self.connection.get("/api/v1/conflicts", list[Conflict], {"mine": mine})

    # curves and logs

    def anomalies(self, run: str) -> AnomaliesReply:
        """Return what was noticed about the curves of a run, the newest first."""
        return self.connection.get(f"/api/v1/runs/{part(run)}/anomalies", AnomaliesReply)

    def compare(self, runs: Sequence[str], metrics: Sequence[str] = ()) -> Comparison:
        """Return what differs between 2 to 100 runs, by name, and their metrics with mean and spread over repeats."""
        return self.connection.post("/api/v1/compare", Comparison, CompareRequest(runs=[*runs], metrics=[*metrics]))

    def tree_file(self, digest: str, path: str, *, most: int) -> bytes | None:
        """Return the bytes of a file of a captured tree; None for one of more than `most` bytes.

        Raises:
            NotFound: the tree has no such file.
        """
        with self.connection.stream(f"/api/v1/trees/{part(digest)}/content", query={"path": path}) as answer:
            if int(answer.headers.get("content-length", 0)) > most:
                return None
            return answer.read()

    def comparisons(self, run: str) -> list[GroupComparison]:
        """Return the tables that were made when the groups of a run (a matrix, a pair) had ended."""
        return self.connection.get(f"/api/v1/runs/{part(run)}/comparisons", list[GroupComparison])

    def metric_tags(self, project: str = "") -> list[MetricTag]:
        """Return the tags of metrics, with the metrics and how many runs have them."""
        return self.connection.get("/api/v1/metric-tags", list[MetricTag], {"project": project})

    def tagged(self, tag: str, *, project: str = "", dataset: str = "", model: str = "") -> list[TaggedValue]:
        """Return last and best of metrics with a tag: across runs by time, or along the versions of a dataset or model."""
        asked = {"project": project, "dataset": dataset, "model": model}
        return self.connection.get(f"/api/v1/metric-tags/{part(tag)}/values", list[TaggedValue], asked)

    def steps(self, run: str) -> StepsReply:
        """Return how the steps of a run go: usual time and split, the slow ones, the ranks."""
        return self.connection.get(f"/api/v1/runs/{part(run)}/steps", StepsReply)

    def keys(self, run: str, *, search: str = "", limit: int = 1000) -> list[KeyInfo]:
        """Return the metrics of a run with first, last, least and greatest value."""
        found = self.connection.get(
            f"/api/v1/runs/{part(run)}/keys", KeysReply, {"search": search, "limit": limit}
        ).keys
        for info in found:
            info.first, info.last = number(info.first), number(info.last)
            info.min = None if info.min is None else number(info.min)
            info.max = None if info.max is None else number(info.max)
        return found

    def series(
        self, *, runs: Sequence[str], keys: Sequence[str], x: str = "step", buckets: int = 1500, start: float | None = None,
        end: float | None = None, all_attempts: bool = False,
    ) -> list[Series]:  # fmt: skip
        """Return curves, at most `buckets` points each. x is `step`, `relative`, `wall` or `metrics.KEY`."""
        return self.curves(
            SeriesQuery(
                runs=list(runs), keys=list(keys), x=x, from_=start, to=end, buckets=buckets, all_attempts=all_attempts
            )
        ).series

    def curves(self, query: SeriesQuery) -> SeriesReply:
        """Return curves with their grid, and cursors to give as `since` when asking for what came later."""
        answer = self.connection.send("POST", "/api/v1/series", content=encode(query), repeat=True, accept=ACCEPT)
        if is_packed(answer):
            return series_of(answer)
        reply = self.connection.decode(answer, SeriesReply)
        for curve in reply.series:
            for name in ("last", "mean", "min", "max"):
                setattr(curve, name, [number(value) for value in getattr(curve, name)])
        return reply

    def history(self, run: str, key: str, *, all_attempts: bool = False) -> list[Point]:
        """Return every point of a metric exactly as it was logged."""
        found: list[Point] = []
        cursor = ""
        while True:
            query = {"key": key, "all_attempts": all_attempts, "cursor": cursor, "limit": 1_000_000}
            answer = self.connection.send("GET", f"/api/v1/runs/{part(run)}/history", query=query, accept=ACCEPT)
            packed = is_packed(answer)
            page = history_of(answer) if packed else self.connection.decode(answer, HistoryReply)
            for point in page.points if not packed else ():
                point.value = number(point.value)
            found += page.points
            cursor = page.next
            if not cursor:
                return found

    def logs(
        self, run: str, *, rank: int | None = None, level: str = "", grep: str = "", attempt: int | None = None,
        tail: int | None = None, follow: bool = False, on_wait: Callable[[RunDetail], None] | None = None,
    ) -> Iterator[LogLine]:  # fmt: skip
        """Yield log lines in order; with `follow` until the run has ended and all its lines came.

        `on_wait` hears how the run stands each time that no further line is there yet.
        """
        asked = {
            "rank": rank,
            "level": level,
            "grep": grep,
            "attempt": attempt,
            "tail": tail,
            "after": "",
            "limit": 2000,
        }
        ended = False
        if follow:
            run = self.run(run).run.id  # `-` and `project/name` may name another one later
        while True:
            page = self.connection.get(f"/api/v1/runs/{part(run)}/logs", LogPage, asked)
            yield from page.lines
            asked = {**asked, "after": page.next or asked["after"], "tail": None}
            if page.more:
                continue
            if not follow or ended:
                return
            detail = self.run(run)
            ended = detail.run.state in ENDED  # one more look after it: the last lines come before the end
            if not ended:
                if on_wait is not None:
                    on_wait(detail)
                time.sleep(0.5)

    def first_error(
        self, run: str, *, rank: int | None = None, attempt: int | None = None, around: int = 20
    ) -> tuple[list[LogLine], LogLine | None]:
        """Return the first line of level error with the lines around it, of all levels, and that line; None where there is none."""
        path = f"/api/v1/runs/{part(run)}/logs"
        asked: dict[str, Any] = {"rank": rank, "attempt": attempt}
        found = self.connection.get(path, LogPage, {**asked, "level": "error", "limit": 1}).lines
        if not found:
            return [], None
        first = found[0]
        before = self.connection.get(path, LogPage, {**asked, "before": first.id, "limit": around}).lines
        after = self.connection.get(path, LogPage, {**asked, "after": first.id, "limit": around}).lines
        return [*before[-around:], first, *after[:around]], first

    def artifacts(self, run: str) -> list[ArtifactView]:
        return self.connection.get(f"/api/v1/runs/{part(run)}/artifacts", list[ArtifactView])

    def samples(self, run: str) -> list[Sample]:
        """Return what the run kept of inputs and outputs, by name and step."""
        kept = [one.path for one in self.artifacts(run) if one.kind == "sample" and one.path.endswith(".json")]
        return sorted(
            (read_sample(path, self.read_artifact(run, path)) for path in kept),
            key=lambda one: (one.name, one.step, one.rank),
        )

    def read_artifact(self, run: str, path: str) -> bytes:
        """Return the bytes of a small artifact."""
        query = {"path": path, "download": True}
        return self.connection.send("GET", f"/api/v1/runs/{part(run)}/artifacts/content", query=query).content

    def download(self, run: str, path: str, target: Path | str = ".") -> Path:
        """Write an artifact of a run into a folder (or to a file name) and return where it lies; verified."""
        return self.data.download_artifact(run, path, Path(target), self.artifacts(run))


def number(value: float | str) -> float:
    """`NaN`, `Infinity`, `-Infinity` → the number."""
    return float(value)
