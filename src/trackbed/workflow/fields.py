"""Every field of `trackbed.yaml`, in one table. The JSON Schema, the checks and `docs/reference/spec.md` come from it.

A field whose room is not built yet stands here too (`built=False`): it is refused with `not_yet`, never ignored.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from trackbed.domain.states import Cause
from trackbed.workflow.values import FORMATS

SCHEMA_ID = "urn:trackbed:schema:spec:1"
LAUNCHERS = ["rank_per_card", "process_per_node", "none"]


@dataclass(frozen=True)
class Field:
    """`schema` is the JSON Schema of the value; `fields` are those of a mapping with a fixed set."""

    name: str
    about: str
    schema: dict[str, Any]
    example: str = ""
    default: str = ""
    built: bool = True
    fields: tuple["Field", ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the JSON Schema of this field."""
        about = {"description": self.about if self.built else f"{self.about} (not yet: refused)"}
        if not self.built:
            return {**about, "x-not-yet": True}
        return about | (mapping(self.fields) if self.fields else self.schema)


def mapping(fields: tuple[Field, ...]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {field.name: field.document() for field in fields},
    }


def _text(fmt: str = "", **more: Any) -> dict[str, Any]:
    return {"type": "string", **({"format": fmt} if fmt else {"minLength": 1}), **more}


def _whole(least: int = 0, most: int = 2**31 - 1) -> dict[str, Any]:
    return {"type": "integer", "minimum": least, "maximum": most}


def _size() -> dict[str, Any]:
    return {"type": ["string", "integer"], "format": "size", "minimum": 0}


def _duration() -> dict[str, Any]:
    return {"type": ["string", "integer", "number"], "format": "duration"}


def _list(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item, "uniqueItems": True}


def _named(key_format: str, value: dict[str, Any] | bool) -> dict[str, Any]:
    return {"type": "object", "propertyNames": {"format": key_format}, "additionalProperties": value}


RESOURCES = (
    Field(
        "cards",
        "Cards on one node; short for cards_per_node with nodes: 1. 0 is one plain process.",
        _whole(0),
        "2",
        "1",
    ),
    Field("cards_per_node", "Cards on each node.", _whole(0), "8", "1"),
    Field("nodes", "Nodes, all or none at once.", _whole(1, 100_000), "2", "1"),
    Field("kind", "Kind of card.", _text(), "any", "any"),
    Field("card_memory", "Least memory of a card.", _size(), "40 GiB", "0"),
    Field("cpus_per_card", "CPU threads a card; also OMP_NUM_THREADS of a rank.", _whole(1, 4096), "8", "1"),
    Field("ram_per_card", "Host memory a card.", _size(), "64 GiB", built=False),
    Field("shm", "Size of /dev/shm.", _size(), "16 GiB", built=False),
    Field("only", "Nodes that may be taken: names, or label=value.", _list(_text()), "[rack=a]", "any"),
    Field("not", "Nodes that may not be taken.", _list(_text()), "[h-07]", "none"),
    Field("time_limit", "The attempt is ended after this time (cause `limit`).", _duration(), "12h", "none"),
)

KEEP = (
    Field("last", "So many of the newest stay.", _whole(1, 10_000), "2", "2"),
    Field("best", "So many of the best stay too.", _whole(0, 10_000), "1", "1 with `by`, else 0"),
    Field("by", "Metric that tells which is best: its last point at or before the step of the checkpoint.", _text(), "eval/loss", "none"),
    Field("goal", "Whether less or more of the metric is better.", {"enum": ["min", "max"]}, "min", "as `define_metric` said, else min"),
)  # fmt: skip

CHECKPOINT = (
    Field("every", "How often our engine and `run.should_save` save: `200 steps`, `epoch` or a time.", _text("every"), "30m", "our engine's own"),
    Field("keep", "Which copies stay in the store; the newest, and one that a run or model refers to, always do.", {}, "{last: 2, best: 1, by: eval/loss}", "all", fields=KEEP),
    Field("upload", "Which checkpoints are copied to the store while the run goes on; the newest always is at a stop.", _text("nth"), "every 4th", "every"),
)  # fmt: skip

ON_PREEMPT = (
    Field(
        "signal", "Signal that asks the ranks to end.", {"enum": ["TERM", "INT", "HUP", "USR1", "USR2"]}, "TERM", "TERM"
    ),
    Field("grace", "Time between the signal and KILL.", _duration(), "120s", "120s"),
)

HANG = (
    Field(
        "after", "How long without a step (without the SDK: without output) is a hang.", _duration(), "15m", "learnt"
    ),
    Field("end", "End the attempt then, with cause hung; needs `after`.", {"type": "boolean"}, "true", "false"),
)

_PARAMS = _named("param-name", True)
_RUN = "Command for `sh -c` in the checked-out tree; `{{params.NAME}}` is replaced by its quoted value."

_CODE: dict[str, Any] = {
    "type": ["string", "object"], "minLength": 1, "required": ["path"], "additionalProperties": False,
    "properties": {"path": _text(), "name": _text("name"), "include": _list(_text("inner-path"))},
}  # fmt: skip

USES = (
    Field("files", "Files, folders and patterns (`*.py`) of the tree; nothing else of it is in the working folder.", _list(_text("inner-path")), "[prep.py, lib/]", "all"),
    Field("data", "Names of the run's inputs.", _list(_text("input-name")), "[corpus]", "all"),
    Field("params", "Names of params.", _list(_text("param-name")), "[shards]", "all"),
)  # fmt: skip

STAGE = (
    Field("name", "Name of the stage.", _text("name"), "prep"),
    Field("run", _RUN, _text(), "python prep.py"),
    Field("recipe", "Name of a recipe of ours.", _text("name"), "pretrain"),
    Field("suite", "Evaluation suite.", _text(), "smoke@1", built=False),
    Field("needs", "Stages that must be done before.", _list(_text("name")), "[prep]", "none"),
    Field("inputs", "Products of earlier stages, found as TRACKBED_DATA_<NAME>.", _named("input-name", _text("product-ref")), "{corpus: prep.shards}", "none"),
    Field("produces", "What the stage leaves: name and path below the working folder or TRACKBED_OUTPUT.", _named("input-name", _text("inner-path")), "{shards: out/}", "none"),
    Field("params", "Params of this stage; they cover the run's.", _PARAMS, "{shards: 4}", "the run's"),
    Field("resources", "Cards of this stage.", {}, "{cards: 0}", "the run's", fields=RESOURCES),
    Field("launcher", "How ranks are started.", {"enum": LAUNCHERS}, "none", "the run's"),
    Field("uses", "All that the stage is given of the run: a change of anything else does not make it run again.", {}, "{files: [prep.py], params: [shards]}", "everything", fields=USES),
)  # fmt: skip

TOP = (
    Field("space", "Walled room of the run.", _text("name"), "default", "default"),
    Field("project", "Project that owns the run.", _text("name"), "demo", "demo"),
    Field("name", "Name of the run; `project/name` is the newest of that name.", _text("name"), "my-train", "none"),
    Field("description", "Why this run is made.", {"type": "string"}, "why I run this", "none"),
    Field("tags", "Words to find it by.", _list(_text("tag")), "[baseline]", "none"),
    Field("template", "Template to start from: its values are covered by this file's, its rules hold.", _text("template-ref"), "pretrain@2", "none"),
    Field("data", "Named inputs, pinned by digest at submit; found as TRACKBED_DATA_<NAME>.", _named("input-name", _text("dataset-ref")), "{corpus: stdlib@latest}", "none"),
    Field("from", "Model or checkpoint to start from; found as TRACKBED_FROM.", {}, "{model: demo-gpt@1}", "none", fields=(
        Field("model", "Model version.", _text("model-ref"), "demo-gpt@1"),
        Field("checkpoint", "Checkpoint of a run: its step, or latest.", _text("checkpoint-ref"), "demo#16@latest"),
        Field("state", "What is taken from a checkpoint; for now a script finds all of it.", {}, "weights", built=False),
    )),
    Field("code", "Folder whose working tree is captured, relative to the spec file; or several, each in a folder of its own: `{path: ../lib, name: lib, include: [ignored.csv]}`.", _CODE | {"type": ["string", "array", "object"], "minItems": 1, "maxItems": 50, "items": _CODE}, "[., {path: ../lib, name: lib}]", "."),
    Field("environment", "What the run is installed with: current = the interpreter that submits (same machine only); a lock or a list to lock (requirements.lock, uv.lock, requirements.txt, pyproject) = packed once, the same everywhere; NAME@sha256:… = a container image, where an engine runs them.", _text("environment"), "requirements.lock", "current"),
    Field("seed", "Start of every random sequence.", _whole(0, 2**63 - 1), "17", "0"),
    Field("determinism", "exact: same bits on the same layout; recorded: what is not exact is listed.", {"enum": ["exact", "recorded"]}, "exact", "exact"),
    Field("params", "Values the program reads from TRACKBED_PARAMS or by `{{params.NAME}}`.", _PARAMS, "{lr: 3.0e-4, batch: 64}", "none"),
    Field("resources", "What one attempt takes.", {}, "{cards: 2, time_limit: 12h}", "{cards: 1}", fields=RESOURCES),
    Field("priority", "Place in the queue; urgent needs the right.", {"enum": ["urgent", "high", "normal", "low", "idle"]}, "normal", "normal"),
    Field("window", "When the run may start or must be done.", {}, "{off_peak: true}", built=False),
    Field("env", "Environment variables of the ranks.", _named("env-name", {"type": "string"}), '{OMP_NUM_THREADS: "4"}', "none"),
    Field("secrets", "Secrets by name; values are never on the record.", {}, "[HF_TOKEN]", built=False),
    Field("run", _RUN, _text(), "python train.py --lr {{params.lr}}"),
    Field("recipe", "Name of a recipe of ours, instead of `run`.", _text("name"), "pretrain"),
    Field("stages", "Parts that need each other, instead of `run`.", {"type": "array", "minItems": 1, "maxItems": 1000, "items": mapping(STAGE) | {"required": ["name"]}}, "[{name: prep, run: python prep.py}]", fields=()),
    Field("launcher", "rank_per_card: one process a card; process_per_node: for torchrun; none: one process.", {"enum": LAUNCHERS}, "rank_per_card", "rank_per_card"),
    Field("checkpoint", "When to save and what to keep.", {}, "{every: 200 steps}", "as below", fields=CHECKPOINT),
    Field("on_preempt", "How ranks are asked to end.", {}, "{signal: TERM, grace: 120s}", "as below", fields=ON_PREEMPT),
    Field("hang", "When a run that makes no progress is told, with the stacks of its ranks, and whether it is ended.", {}, "{after: 15m, end: true}", "told, not ended", fields=HANG),
    Field("on_rank_loss", "end: a new attempt follows; restart: not yet.", {"enum": ["end", "restart"]}, "end", "end"),
    Field("fencing", "relaxed: a run without contact goes on; strict: it ends with its lease.", {"enum": ["relaxed", "strict"]}, "relaxed", "relaxed"),
    Field("orphan_limit", "Longest time a run goes on without contact to the server.", _duration(), "24h", "24h"),
    Field("retries", "New attempts by cause of the end.", {
        "type": "object", "propertyNames": {"enum": [cause.value for cause in Cause if cause not in (Cause.DONE, Cause.STOPPED, Cause.PAUSED)]},
        "additionalProperties": _whole(0, 1000),
    }, "{user_error: 0, node: 3}", "see causes"),
    Field("needs", "Runs that must finish first.", {}, "[demo#16]", built=False),
    Field("notify", "Who hears of the end.", {}, "[owner]", built=False),
    Field("price_limit", "Refused at submit above this price.", {}, "200", built=False),
    Field("matrix", "One run for each combination of these params (and of `seed`); at most 256.", _named("param-name", {"type": "array", "minItems": 1, "uniqueItems": True}), "{lr: [0.1, 0.01], seed: [1, 2]}", "none"),
    Field("cache", "false: every stage is run, also one that was run before with all the same.", {"type": "boolean"}, "false", "true"),
    Field("register", "Register an output as the next version of a model.", {}, "{model: demo-gpt, when: \"metrics.'eval/loss' < 3.0\"}", "none", fields=(
        Field("model", "Name of the model.", _text("name"), "demo-gpt"),
        Field("when", "Condition on the record at the end; without one, a finished run registers.", _text(), "metrics.'eval/loss' < 3.0", "finished"),
        Field("path", "Folder or file below TRACKBED_OUTPUT.", _text("inner-path"), "model", "model"),
    )),
)  # fmt: skip


def schema() -> dict[str, Any]:
    """Return the published JSON Schema (draft 2020-12) of a spec file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": "Trackbed run spec",
        "description": "trackbed.yaml, YAML 1.2. Exactly one of run, recipe, stages.",
        **mapping(TOP),
    }


def not_yet_fields() -> Iterator[str]:
    """Yield the names of fields that are refused for now, dotted."""

    def walk(fields: tuple[Field, ...], before: str) -> Iterator[str]:
        for field in fields:
            if not field.built:
                yield before + field.name
            yield from walk(field.fields, f"{before}{field.name}.")

    yield from walk(TOP, "")
    yield from walk(STAGE, "stages[].")


def is_format(name: str) -> Callable[[object], bool]:
    """Return the check of a text format of the schema, by name."""
    return FORMATS[name]
