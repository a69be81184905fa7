"""Submitting: read the spec, ask the server what it thinks of it, capture, push what is missing, submit.

The server is asked first (a dry run), so that a missing dataset is told together with a misspelt field, before anything
is sent, and nothing is left behind.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from trackbed.base.entropy import new_id
from trackbed.base.errors import Fault, TrackbedError
from trackbed.base.home import home
from trackbed.client.connection import Connection
from trackbed.client.push import Progress, push
from trackbed.sources.blame import add_blame
from trackbed.sources.capture import Capture, Part, capture_parts
from trackbed.sources.environment import digest_of, record_current
from trackbed.sources.locking import lock_of, record_of_lock
from trackbed.sources.touched import add_touched
from trackbed.wire.runs import (
    CloneView,
    EnvironmentRecord,
    Reason,
    StatusView,
    SubmitReply,
    SubmitRequest,
    TreeFacts,
)
from trackbed.wire.spec import Spec
from trackbed.wire.trial import TrialRequest
from trackbed.workflow import spec as specs
from trackbed.workflow.spec import Loaded


@dataclass
class Prepared:
    """A spec that was read, and the folders whose working trees go with it. Nothing is captured yet."""

    loaded: Loaded
    parts: list[Part]
    allow: tuple[str, ...] = ()
    base: Path | None = None  # where `code` of the spec starts; None: a folder was given
    _captured: Capture | None = field(default=None, repr=False)

    def send(
        self, connection: Connection, *, dry_run: bool = False, trial: TrialRequest | None = None,
        on_progress: Progress | None = None,
    ) -> SubmitReply:  # fmt: skip
        """Submit; with `trial` the run is held until a few steps of it were tried.

        Raises:
            BadInput: `spec_wrong` with every fault, the server's included; `sources_capture_refused`.
        """
        told, commits_before = self._ask_first(connection)
        if self.base is not None and self.loaded.spec.template:
            self.parts = parts_of(told, self.base)
        captured = self.capture()
        for one, facts in zip(self.parts, captured.facts.repositories or [captured.facts], strict=True):
            if not dry_run:
                add_blame(one.folder, facts, commits_before)
                add_touched(one.folder, facts)
        environment, notes = self._environment(connection, told)
        if not dry_run:
            push(connection, captured.scan, space=self.loaded.spec.space, on_progress=on_progress)
        request = SubmitRequest(
            spec=self.loaded.spec, tree=None if dry_run else captured.facts, environment=environment, dry_run=dry_run,
            values=self.loaded.values, set_fields=self.loaded.set_fields, trial=trial,
        )  # fmt: skip
        reply = connection.post("/api/v1/runs", SubmitReply, request, key="" if dry_run else new_id("idm"))
        reply.warnings = [*self.loaded.warnings, *tree_warnings(captured.facts), *notes, *reply.warnings]
        return reply

    def register(self, connection: Connection) -> SubmitRequest:
        """Return what `send` would ask for, its code in the store: for a trigger that asks for it later, again and again.

        Raises:
            BadInput: as `send`.
        """
        told, _ = self._ask_first(connection)
        captured = self.capture()
        push(connection, captured.scan, space=self.loaded.spec.space)
        return SubmitRequest(
            spec=self.loaded.spec, tree=captured.facts, environment=self._environment(connection, told)[0], values=self.loaded.values,
            set_fields=self.loaded.set_fields,
        )  # fmt: skip

    def capture(self) -> Capture:
        """Return the working tree as it is now; the second call returns what the first found."""
        if self._captured is None:
            self._captured = capture_parts(self.parts, allow=self.allow, cache=home() / "client" / "code")
        return self._captured

    def _environment(self, connection: Connection, spec: Spec) -> tuple[EnvironmentRecord, list[Reason]]:
        """Return what the run is to be installed with, and what is to know about it. Locking may ask a package index."""
        wanted = spec.environment
        if wanted == "current":
            return record_current(), []
        if "@sha256:" in wanted:
            record = EnvironmentRecord(kind="image", image=wanted)
            record.digest = digest_of(record)
            return record, []
        platforms = connection.get("/api/v1/status", StatusView).platforms
        folder = next((one.folder for one in self.parts if not one.name), self.parts[0].folder)
        lock = lock_of(folder if wanted == "pyproject" else folder / wanted, platforms=platforms)
        return record_of_lock(lock), [Reason(code=note.code, params=note.params) for note in lock.notes]

    def _ask_first(self, connection: Connection) -> tuple[Spec, list[str]]:
        """Return the spec as the server resolves it, and commits of runs before; raise what is wrong, here and there, all
        at once."""
        faults = list(self.loaded.faults)
        spec, commits = self.loaded.spec, list[str]()
        request = SubmitRequest(
            spec=spec, dry_run=True, values=self.loaded.values, set_fields=self.loaded.set_fields
        )  # fmt: skip
        try:
            reply = connection.post("/api/v1/runs", SubmitReply, request)
            spec, commits = reply.spec, reply.commits_before
        except TrackbedError as error:
            told = [fault for fault in error.faults if not _known(fault, faults)]
            if not faults and not told:
                raise
            faults += [self.loaded.placed(fault) for fault in told]
        if faults:
            raise specs.wrong(faults)
        return spec, commits


@dataclass
class Again:
    """A run to be submitted again with other values: its tree and environment are on the server already."""

    request: SubmitRequest
    loaded: Loaded

    def send(
        self, connection: Connection, *, dry_run: bool = False, trial: TrialRequest | None = None,
        on_progress: Progress | None = None,
    ) -> SubmitReply:  # fmt: skip
        """Submit.

        Raises:
            BadInput: `spec_wrong` with every fault.
        """
        del on_progress  # nothing is sent
        if self.loaded.faults:
            raise specs.wrong(self.loaded.faults)
        request = msgspec.structs.replace(self.request, dry_run=dry_run, trial=trial)
        reply = connection.post("/api/v1/runs", SubmitReply, request, key="" if dry_run else new_id("idm"))
        reply.warnings = [*self.loaded.warnings, *reply.warnings]
        return reply


def again(found: CloneView, sets: Sequence[str]) -> Again:
    """Return a run as its record would make it again, with `sets` on top; a value that must change is one of those."""
    loaded = specs.from_values(found.request.values, sets)
    request = msgspec.structs.replace(
        found.request, spec=loaded.spec, values=loaded.values, set_fields=loaded.set_fields
    )
    return Again(request, loaded)


def _known(fault: Fault, faults: Iterable[Fault]) -> bool:
    """Whether the server only repeats, or draws from a field that is at fault here, what is told already."""
    top = fault.field.partition(".")[0].partition("[")[0]
    for one in faults:
        here = one.field.partition(".")[0].partition("[")[0]
        if (
            fault.field == one.field
            or (not fault.field and not here)
            or (fault.code.startswith("spec_kind") and here in ("run", "recipe", "stages"))
        ):
            return True
        if fault.code == "spec_param_undefined" and here == "params" and top in ("run", "stages"):
            return True
    return False


def prepare(
    source: Path | str | dict[str, Any] | Spec, sets: Sequence[str] = (), *, folder: Path | None = None, allow: Sequence[str] = ()
) -> Prepared:  # fmt: skip
    """Read a spec: a file (Path, or text without a line break), YAML text, a dict in the form of the file, or a Spec.

    `code` in it is relative to the file, else to the present folder; `folder` overrides both.
    """
    base = Path()
    if isinstance(source, Spec):
        loaded = Loaded(source, specs.check(source))
    elif isinstance(source, dict):
        loaded = specs.from_values(source, sets)
    elif isinstance(source, str) and "\n" in source:
        loaded = specs.read(source, sets)
    else:
        base = Path(source).parent
        loaded = specs.read(Path(source), sets)
    if folder is not None:
        return Prepared(loaded, [Part(folder)], tuple(allow))
    return Prepared(loaded, parts_of(loaded.spec, base), tuple(allow), base)


def parts_of(spec: Spec, base: Path) -> list[Part]:
    """The folders that a spec names, relative to its own."""
    if isinstance(spec.code, str):
        return [Part(base / spec.code)]
    return [Part(base / one.path, one.name, tuple(one.include)) for one in spec.code]


def tree_warnings(facts: TreeFacts) -> list[Reason]:
    """What a captured tree lacks that its files point to."""
    found: list[Reason] = []
    for one in facts.repositories or [facts]:
        where = one.name or "."
        if one.lfs_pointers:
            shown = ", ".join(one.lfs_pointers[:5])
            found.append(
                Reason(code="lfs_not_fetched", params={"count": len(one.lfs_pointers), "paths": shown, "where": where})
            )
        if one.missing_submodules:
            shown = ", ".join(one.missing_submodules[:5])
            found.append(Reason(code="submodule_not_fetched", params={
                "count": len(one.missing_submodules), "paths": shown, "where": where}))  # fmt: skip
    return found
