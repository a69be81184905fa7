"""template: from what a file says and the template it names to the spec that is asked for."""

from dataclasses import dataclass, field

import msgspec

from trackbed.base.errors import BadInput, Denied, Fault, NotFound
from trackbed.db import ReadTx
from trackbed.domain.scope import Scope
from trackbed.server.flows.reproduce import pinned
from trackbed.tracking import runs
from trackbed.wire.problems import FaultView
from trackbed.wire.runs import ResolvedValue, SubmitRequest
from trackbed.wire.spec import Spec
from trackbed.wire.templates import FormRequest, FormView
from trackbed.workflow import template, templates
from trackbed.workflow.edit import with_values
from trackbed.workflow.form import form_of
from trackbed.workflow.spec import read as read_spec


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


def form_view(tx: ReadTx, scope: Scope, asked: FormRequest) -> FormView:
    """Return a file in both forms, with the fields of a form by the rules of its template."""
    text = asked.text if asked.values is None else with_values(asked.text, asked.values)
    loaded = read_spec(text)
    faults, found, values = list(loaded.faults), None, loaded.values
    version = ""
    if isinstance(values.get("template"), str):
        named = template_of(
            tx, scope, SubmitRequest(spec=Spec(template=values["template"], space=asked.space), values=values)
        )
        found, version = named.read, named.version
        faults += [loaded.placed(fault) for fault in named.faults]
    if found is not None:
        faults = [loaded.placed(fault) for fault in template.resolve(found, values).faults]
    return FormView(
        text=text, values=values, fields=form_of(found, values), template=version, faults=[FaultView(code=one.code, field=one.field, line=one.line, params=one.params) for one in faults]
    )  # fmt: skip
