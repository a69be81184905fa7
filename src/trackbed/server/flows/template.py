"""template: from what a file says and the template it names to the spec that is asked for."""

from dataclasses import dataclass, field

import msgspec

from trackbed.base.errors import BadInput, Denied, Fault, NotFound
from trackbed.db import ReadTx
from trackbed.domain.scope import Scope
from trackbed.server.flows.reproduce import pinned
from trackbed.tracking import runs
from trackbed.wire.runs import ResolvedValue, SubmitRequest
from trackbed.workflow import template, templates


@dataclass
class Asked:
    """The request with its template resolved. `judged`: all rules were asked already, here with their template."""

    request: SubmitRequest
    faults: list[Fault] = field(default_factory=list[Fault])
    resolved: list[ResolvedValue] = field(default_factory=list[ResolvedValue])
    judged: bool = False


@dataclass
class Named:
    """The template that a request names, and the version it means; or what is wrong with that."""

    read: template.Template | None = None
    version: str = ""
    faults: list[Fault] = field(default_factory=list[Fault])


def template_of(tx: ReadTx, scope: Scope, request: SubmitRequest) -> Named:
    """Look up the template of a request.

    A spec that is not from a file says what it is in full: it may name a template only as a reproduction of a run that does.
    """
    ref = request.spec.template
    if not ref:
        return Named()
    if not request.values:
        return Named(faults=[] if _is_reproduction(tx, scope, request) else [Fault("template_needs_file", "template")])
    try:
        found = templates.resolve(tx, scope, ref, request.spec.space)
        read = templates.document_of(tx, scope, found)
    except (BadInput, NotFound, Denied) as error:
        return Named(faults=[Fault(error.code, "template", None, error.params)])
    name = f"{found.name}@{found.version}"
    return Named(read, f"{found.space}/{name}" if "/" in ref else name)


def with_template(request: SubmitRequest, named: Named) -> Asked:
    """Return the request whose spec is template < file < `--set`, with the version of the template pinned."""
    values, sets = request.values, request.set_fields
    if named.read is None:
        shown = template.origins(None, values, sets, values) if request.dry_run and values else []
        return Asked(request, named.faults, shown, judged=bool(named.faults and values))
    made = template.resolve(named.read, values)
    spec = msgspec.structs.replace(made.spec, template=named.version)
    shown = template.origins(named.read, values, sets, made.values) if request.dry_run else []
    return Asked(msgspec.structs.replace(request, spec=spec), made.faults, shown, judged=bool(made.faults))


def _is_reproduction(tx: ReadTx, scope: Scope, request: SubmitRequest) -> bool:
    if not request.reproduces:
        return False
    try:
        original = runs.resolve(tx, scope, request.reproduces)
    except (BadInput, NotFound, Denied):
        return False
    return pinned(runs.spec_of(original)) == request.spec
