"""From `trackbed.yaml` and `--set` to the spec of a run, or every fault of it at once, each with its line and way out.

    read(Path("trackbed.yaml"), ["params.lr=1e-3"]) -> Loaded     what is sound, all faults, warnings, lines
    load(...)                                       -> Spec       or BadInput("spec_wrong", faults=[…])
    check(spec)                                     -> [Fault]    the same rules for a spec that never was a file

Names of datasets, models and runs are only looked at here; the server resolves them to digests.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import msgspec

from trackbed.base.errors import BadInput, Fault, NotFound, TooLarge
from trackbed.wire.runs import Reason
from trackbed.wire.spec import Spec
from trackbed.workflow import read as yaml_text
from trackbed.workflow.check import find, notice, texts
from trackbed.workflow.finding import Finding
from trackbed.workflow.read import Document, Place, show
from trackbed.workflow.schema import schema_findings
from trackbed.workflow.sets import apply_sets
from trackbed.workflow.shape import shape, unshape


@dataclass
class Loaded:
    """What a spec file says. `spec` is whole only where `faults` is empty; else the sound part, for a dry run."""

    spec: Spec
    faults: list[Fault] = field(default_factory=list[Fault])
    warnings: list[Reason] = field(default_factory=list[Reason])
    document: Document = field(default_factory=Document)

    def placed(self, fault: Fault) -> Fault:
        """Return a fault that the server found, with the line of its field in this file."""
        if fault.line is not None or not fault.field:
            return fault
        parts = fault.field.replace("[", ".").replace("]", "").split(".")
        path = tuple(int(part) if part.isdigit() else part for part in parts)
        return fault._replace(line=self.document.line(path))


def load(source: Path | str, sets: Sequence[str] = ()) -> Spec:
    """Return the checked spec of a file (Path) or text (str).

    Raises:
        BadInput: `spec_wrong` with every fault.
        NotFound: `spec_file_missing`.
        TooLarge: `spec_file_too_large`.
    """
    loaded = read(source, sets)
    if loaded.faults:
        raise wrong(loaded.faults)
    return loaded.spec


def wrong(faults: Sequence[Fault]) -> BadInput:
    """Return the one error that carries them all, in the order of the file."""
    ordered = sorted(faults, key=lambda fault: (fault.line is None, fault.line or 0))
    return BadInput("spec_wrong", faults=ordered, count=len(ordered))


def read(source: Path | str, sets: Sequence[str] = ()) -> Loaded:
    """Return everything that can be said of the file; never raises for what stands in it."""
    document = yaml_text.read_yaml(_text(source))
    return _loaded(document, sets)


def from_values(values: dict[str, Any], sets: Sequence[str] = ()) -> Loaded:
    """The same for a spec given as a dict in the form of the file."""
    return _loaded(Document(value=values), sets)


def check(spec: Spec) -> list[Fault]:
    """Return the faults of a spec that came over the wire; paths instead of lines."""
    found = schema_findings(unshape(spec))
    broken = {one.path for one in found}
    found += [one for one in find(spec) if one.path not in broken and not one.moot(broken)]
    return [Fault(one.code, show(one.path), None, one.params) for one in found]


def _text(source: Path | str) -> str:
    if isinstance(source, str):
        return source
    try:
        data = source.read_bytes()
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        raise NotFound("spec_file_missing", path=str(source)) from None
    except OSError as error:
        raise BadInput("spec_file_unreadable", path=str(source), what=error.strerror or str(error)) from None
    if len(data) > yaml_text.MAX_TEXT_BYTES:
        raise TooLarge("spec_file_too_large", path=str(source), limit="8 MiB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadInput("spec_wrong", faults=[Fault("spec_not_utf8", "", line, {})], count=1) from None


def _loaded(document: Document, sets: Sequence[str]) -> Loaded:
    if document.value is None and document.faults:  # not YAML at all: nothing more can be said
        return Loaded(Spec(), document.faults, [], document)
    value = {} if document.value is None else document.value
    if not isinstance(value, dict):
        return Loaded(Spec(), [*document.faults, Fault("spec_not_mapping", "", document.line(()), {})], [], document)
    values = cast(dict[str, Any], _without(value, document.broken))
    faults = [*document.faults, *apply_sets(values, sets, document)]
    found = schema_findings(values)
    found += [finding for finding in texts(values) if finding.path not in {one.path for one in found}]
    broken = {finding.path for finding in found} | document.broken
    shaped, combinations = shape(cast(dict[str, Any], _without(values, broken)))
    found += [finding for finding in combinations if not finding.moot(broken)]
    spec = msgspec.convert(shaped, Spec)
    broken |= {finding.path for finding in combinations}
    found += [finding for finding in find(spec) if not finding.moot(broken)]
    faults += [_placed(finding, document) for finding in found]
    return Loaded(spec, faults, notice(spec), document)


def _without(value: Any, broken: set[Place], at: Place = ()) -> Any:
    """Return a copy without the broken values; a list with a broken item goes whole, so that places keep their number."""
    if isinstance(value, dict):
        items = cast(dict[str, Any], value).items()
        kept = {name: inner for name, inner in items if not _is_broken((*at, name), inner, broken)}
        return {name: _without(inner, broken, (*at, name)) for name, inner in kept.items()}
    if isinstance(value, list):
        return [_without(inner, broken, (*at, index)) for index, inner in enumerate(cast(list[Any], value))]
    return value


def _is_broken(path: Place, value: Any, broken: set[Place]) -> bool:
    return path in broken or (isinstance(value, list) and any((*path, index) in broken for index in range(len(value))))


def _placed(finding: Finding, document: Document) -> Fault:
    line = document.line(finding.path)
    if line and finding.row is not None:
        line += finding.row + (finding.path in document.blocks)
    return Fault(finding.code, show(finding.path), line, finding.params)
