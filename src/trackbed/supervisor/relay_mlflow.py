"""MLflow inside a job: what can be answered here is, whether the server is there or not; None means: ask the server.

Points, params, tags, names, inputs and statuses are spooled first and then answered. Every experiment name means the job's
project. The first run that a rank makes is the job's own, unless it is nested in another; a later one is a child run.
"""

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from trackbed.base.entropy import new_id
from trackbed.base.errors import BadInput, NotFound, TooLarge
from trackbed.domain.states import Cause
from trackbed.supervisor.relay_told import Spooler, Told, given_params
from trackbed.wire.attempts import Assignment
from trackbed.wire.mlflow import (
    DEFAULT_EXPERIMENT,
    ENDS,
    RUN_NAME,
    RUN_PARENT,
    SERVER_INFO,
    Asked,
    Document,
    Point,
    read_params,
    read_point,
    read_status,
    read_tag,
)

_BY_NAME = re.compile(r"name = '[^']*'")
ROOTS = ("/api/2.0/mlflow/", "/ajax-api/2.0/mlflow/")
MOST_CHILDREN = 10_000
MOST_ENTRIES = 100_000  # points, params and tags of one request together
_STATUS_OF = {Cause.DONE: "FINISHED", Cause.STOPPED: "KILLED", Cause.PREEMPTED: "KILLED", Cause.PAUSED: "KILLED"}
Ask = Callable[[str], Document | None]  # a GET of the server, None where it does not answer


@dataclass(frozen=True)
class Caller:
    """Who asks: the rank, by its secret."""

    rank: int


Route = Callable[[Caller, Asked], Document | None]


class Mlflow:
    """Routes of one attempt; called by many threads."""

    def __init__(self, given: Assignment, spooler: Spooler, ask: Ask) -> None:
        self._given, self._spooler, self._ask = given, spooler, ask
        self.own = Told(
            run_id=given.run_id, experiment_id=given.project_id, owner=given.owner, started_ms=_now_ms(),
            name=given.run_name or given.run_ref, params=given_params(given.params),
        )  # fmt: skip
        self._children: dict[str, Told] = {}
        self.models_made = given.number > 1  # an earlier attempt may have
        self._taken: set[int] = set()  # ranks that have the job's own run
        self._lock = threading.RLock()
        self._routes: dict[tuple[str, str], Route] = {
            ("GET", "experiments/get-by-name"): lambda who, asked: self._experiment(),
            ("GET", "experiments/get"): self._get_experiment,
            ("POST", "experiments/create"): lambda who, asked: {"experiment_id": self.own.experiment_id},
            ("POST", "experiments/set-experiment-tag"): self._tag_experiment,
            ("POST", "runs/create"): self._create,
            ("GET", "runs/get"): self._get,
            ("POST", "runs/update"): self._update,
            ("POST", "runs/log-metric"): self._log_metric,
            ("POST", "runs/log-parameter"): self._log_param,
            ("POST", "runs/log-batch"): self._log_batch,
            ("POST", "runs/set-tag"): self._set_tag,
            ("POST", "runs/delete-tag"): self._delete_tag,
            ("POST", "runs/log-inputs"): self._log_inputs,
            ("POST", "runs/outputs"): self._log_outputs,
            ("POST", "runs/log-model"): self._log_model,
        }

    def route(self, method: str, path: str) -> Route | None:
        """Return what answers a request, or None where only the server can.

        The route returns None where it does not know either, and raises a TrackbedError as MLflow's own server would
        refuse, and where the spool cannot be written.
        """
        if path.endswith("api/3.0/mlflow/server-info"):
            return lambda who, asked: SERVER_INFO
        root = next((root for root in ROOTS if path.startswith(root)), "")
        return self._routes.get((method, path.removeprefix(root))) if root else None

    def without_server(self, method: str, path: str, fields: Document) -> Document | None:
        """Return what is still known of a request that only the server could answer well; None for most.

        A client that loads an artifact of a run looks for a logged model of the same name too. Those of a job are made
        with the server's help: one that never had it has none.
        """
        asked = Asked(fields)
        if (method, path.rpartition("/mlflow/")[2]) != ("POST", "logged-models/search") or self.models_made:
            return None
        of_artifact = asked.texts("experiment_ids") == [self.own.experiment_id] and _BY_NAME.fullmatch(
            asked.text("filter")
        )
        return {"models": []} if of_artifact else None

    def note_forwarded(self, method: str, path: str) -> None:
        self.models_made |= method == "POST" and path.endswith("/mlflow/logged-models")

    def end_children(self, cause: Cause) -> None:
        """Say of child runs that nobody ended how their job did: their client is gone with it."""
        with self._lock:
            for told in self._children.values():
                if told.status not in ENDS:
                    body = {"status": _STATUS_OF.get(cause, "FAILED"), "end_time": _now_ms()}
                    self._spooler.do(told.run_id, "runs/update", body)

    def told(self, run_id: str) -> Told | None:
        """Return what is known of a run of this job, None of any other."""
        return self.own if run_id == self.own.run_id else self._children.get(run_id)

    # Experiments

    def _experiment(self) -> Document:
        name, ident = self._given.project, self.own.experiment_id
        times = {"last_update_time": self.own.started_ms, "creation_time": self.own.started_ms}
        shown = {"experiment_id": ident, "name": name, "artifact_location": f"mlflow-artifacts:/{ident}"}
        return {"experiment": {**shown, "lifecycle_stage": "active", **times, "tags": []}}

    def _get_experiment(self, who: Caller, asked: Asked) -> Document | None:
        ours = asked.need("experiment_id") in (DEFAULT_EXPERIMENT, self.own.experiment_id)
        return self._experiment() if ours else None

    def _tag_experiment(self, who: Caller, asked: Asked) -> Document | None:
        if asked.need("experiment_id") not in (DEFAULT_EXPERIMENT, self.own.experiment_id):
            return None
        key, value = read_tag(asked)
        body = {"experiment_id": self.own.experiment_id, "key": key, "value": value}
        self._spooler.do(self.own.run_id, "experiments/set-experiment-tag", body)
        return {}

    # Runs

    def _create(self, who: Caller, asked: Asked) -> Document:
        tags = dict(read_tag(one) for one in asked.records("tags"))
        name = asked.text("run_name") or tags.get(RUN_NAME, "")
        body: Document = {
            "run_name": name, "start_time": asked.whole("start_time"),
            "tags": [{"key": key, "value": value} for key, value in tags.items() if key != RUN_NAME],
        }  # fmt: skip
        tags.pop(RUN_NAME, None)
        with self._lock:
            told = self._take_own(who, name, tags, body) or self._new_child(name, tags, body)
        return {"run": told.view() if told.child else self._seen(told)}

    def _take_own(self, who: Caller, name: str, tags: dict[str, str], body: Document) -> Told | None:
        if who.rank in self._taken or RUN_PARENT in tags:
            return None
        self._taken.add(who.rank)
        self._spooler.do(self.own.run_id, "runs/create", body)
        if name and not self._given.run_name:
            self.own.name = name
        self.own.note_tags(tags)
        return self.own

    def _new_child(self, name: str, tags: dict[str, str], body: Document) -> Told:
        if len(self._children) >= MOST_CHILDREN:
            raise TooLarge("mlflow_children_many", most=MOST_CHILDREN)
        tags = {RUN_PARENT: self.own.run_id} | tags
        body["tags"] = [{"key": key, "value": value} for key, value in tags.items()]
        told = Told(
            run_id=new_id("run"), experiment_id=self.own.experiment_id, owner=self.own.owner, child=True,
            started_ms=body["start_time"] or _now_ms(), name=name or f"{self.own.name}/{len(self._children) + 1}",
        )  # fmt: skip
        body["run_name"] = told.name
        self._spooler.do(told.run_id, "runs/create", body)
        told.note_tags(tags)
        self._children[told.run_id] = told
        return told

    def _get(self, who: Caller, asked: Asked) -> Document | None:
        told = self.told(asked.need("run_id", "run_uuid"))
        return {"run": self._seen(told)} if told is not None else None

    def _seen(self, told: Told) -> Document:
        """What the server knows of a run (an earlier attempt's points, say), and what was said here since."""
        answer = self._ask(f"/api/2.0/mlflow/runs/get?run_id={told.run_id}")
        with self._lock:
            return told.view(answer.get("run") if answer else None)

    def _update(self, who: Caller, asked: Asked) -> Document | None:
        told = self.told(asked.need("run_id", "run_uuid"))
        if told is None:
            return None
        status, name = read_status(asked), asked.text("run_name")
        body = {"status": status, "run_name": name, "end_time": asked.whole("end_time")}
        with self._lock:
            self._spooler.do(told.run_id, "runs/update", {key: value for key, value in body.items() if value})
            told.name = name or told.name
            if told.child:
                told.status = status or told.status
                told.ended_ms = (asked.whole("end_time") or _now_ms()) if told.status in ENDS else 0
            elif status == "RUNNING":
                self._taken.add(who.rank)  # it took up the job's run by MLFLOW_RUN_ID: the next one it makes is another
        return {"run_info": told.info()}

    # What is logged

    def _log_metric(self, who: Caller, asked: Asked) -> Document | None:
        return self._log(asked, metrics=[asked])

    def _log_param(self, who: Caller, asked: Asked) -> Document | None:
        return self._log(asked, params=read_params([asked]))

    def _set_tag(self, who: Caller, asked: Asked) -> Document | None:
        return self._log(asked, tags=dict([read_tag(asked)]))

    def _log_batch(self, who: Caller, asked: Asked) -> Document | None:
        metrics, params, tags = asked.records("metrics"), asked.records("params"), asked.records("tags")
        if len(metrics) + len(params) + len(tags) > MOST_ENTRIES:
            raise BadInput("mlflow_entries_many", given=len(metrics) + len(params) + len(tags), most=MOST_ENTRIES)
        return self._log(asked, metrics, read_params(params), dict(read_tag(one) for one in tags))

    def _log(
        self,
        asked: Asked,
        metrics: list[Asked] | None = None,
        params: dict[str, str] | None = None,
        tags: dict[str, str] | None = None,
    ) -> Document | None:
        """Take all of a request or nothing: everything is checked before the first frame is written."""
        told = self.told(asked.need("run_id", "run_uuid"))
        if told is None:
            return None
        points = [read_point(one) for one in metrics or []]
        with self._lock:
            self._keep(told, points, [one for one in metrics or [] if one.text("model_id")], params or {}, tags or {})
        return {}

    def _keep(
        self, told: Told, points: list[Point], of_models: list[Asked], params: dict[str, str], tags: dict[str, str]
    ) -> None:
        told.check_params(params)
        new = {name: value for name, value in params.items() if name not in told.params}
        if points:
            self._spooler.points(told.run_id, points)
            told.note_points(points)
        if of_models:
            self._spooler.do(told.run_id, "runs/model-metrics", {"metrics": [_model_point(one) for one in of_models]})
        if new:
            self._spooler.params(told.run_id, new)
            told.note_params(new)
        if tags:
            body = {"tags": [{"key": key, "value": value} for key, value in tags.items()]}
            self._spooler.do(told.run_id, "runs/set-tags", body)
            told.note_tags(tags)

    def _delete_tag(self, who: Caller, asked: Asked) -> Document | None:
        told, key = self.told(asked.need("run_id")), asked.need("key")
        if told is None:
            return None
        if key not in told.tags:
            seen = {one["key"] for one in self._seen(told)["data"]["tags"]}
            if key not in seen:
                raise NotFound("mlflow_tag_unknown", key=key[:200])
        with self._lock:
            self._spooler.do(told.run_id, "runs/delete-tag", {"key": key})
            told.forget_tag(key)
        return {}

    def _log_inputs(self, who: Caller, asked: Asked) -> Document | None:
        datasets, models = asked.records("datasets"), asked.records("models")
        for one in datasets:
            one.record("dataset").need("name")
            one.record("dataset").need("digest")
        body = {"datasets": [one.fields for one in datasets], "models": _models(models)}
        return self._leave(asked, "runs/log-inputs", body)

    def _log_outputs(self, who: Caller, asked: Asked) -> Document | None:
        return self._leave(asked, "runs/outputs", {"models": _models(asked.records("models"))})

    def _log_model(self, who: Caller, asked: Asked) -> Document | None:
        return self._leave(asked, "runs/log-model", {"model_json": asked.need("model_json")})

    def _leave(self, asked: Asked, what: str, body: Document) -> Document | None:
        told = self.told(asked.need("run_id"))
        if told is None:
            return None
        self._spooler.do(told.run_id, what, body)
        return {}


def _models(entries: list[Asked]) -> list[Document]:
    return [{"model_id": one.need("model_id"), "step": one.whole("step")} for one in entries]


def _model_point(entry: Asked) -> Document:
    names = ("key", "value", "timestamp", "step", "model_id", "dataset_name", "dataset_digest")
    return {name: entry.fields[name] for name in names if name in entry.fields}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
