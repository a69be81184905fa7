"""Templates of specs."""

import asyncio
from typing import Any

from litestar import get, post

from trackbed.base.errors import BadInput, TooLarge
from trackbed.db import Tx
from trackbed.domain.scope import Permission, Scope
from trackbed.server.app import App
from trackbed.server.flows.reviewed import template_item
from trackbed.server.flows.template import form_view
from trackbed.sources import reviews
from trackbed.wire.problems import FaultView
from trackbed.wire.templates import (
    FormRequest,
    FormView,
    SpecRead,
    SpecText,
    TemplateRequest,
    TemplateVersionView,
    TemplateView,
)
from trackbed.workflow import spec as specs
from trackbed.workflow import templates
from trackbed.workflow.as_file import to_yaml
from trackbed.workflow.edit import with_values
from trackbed.workflow.template import MAX_TEXT_BYTES, read_template

READ = {"permission": Permission.READ}
MAINTAIN = {"permission": Permission.MAINTAIN}


@get("/api/v1/templates", opt=READ, name="list_templates", operation_id="list_templates")
async def list_all(trackbed_app: App, who: Scope, space: str = "") -> list[TemplateView]:
    """All templates, or those of one space, each with its newest version."""
    return await trackbed_app.db.aread(lambda tx: templates.list_templates(tx, who, space))


@get("/api/v1/templates/{name:str}", opt=READ, name="show_template", operation_id="show_template")
async def show(trackbed_app: App, who: Scope, name: str, space: str = "") -> TemplateView:
    """One template with all its versions, the newest first."""
    return await trackbed_app.db.aread(lambda tx: templates.show(tx, who, name, space))


@get("/api/v1/templates/{name:str}/resolve", opt=READ, name="resolve_template", operation_id="resolve_template")
async def resolve(trackbed_app: App, who: Scope, name: str, ref: str) -> TemplateVersionView:
    """The version that a reference means now."""
    return await trackbed_app.db.aread(lambda tx: templates.resolve(tx, who, ref))


@post("/api/v1/templates", opt=MAINTAIN, name="add_template", operation_id="add_template")
async def add(data: TemplateRequest, trackbed_app: App, who: Scope) -> TemplateVersionView:
    """Add the next version of a template, if the newest is the one that its writer saw."""
    read, faults = await asyncio.to_thread(read_template, data.text)
    if faults:
        faults.sort(key=lambda fault: (fault.line is None, fault.line or 0))
        raise BadInput("template_wrong", faults=faults, count=len(faults))

    def work(tx: Tx) -> TemplateVersionView:
        made = templates.add(tx, who, read, data.text, space=data.space, expected=data.expected)
        if not made.unchanged:
            reviews.require(tx, who, template_item(read.name, data.text), space=data.space)
        return made

    return await trackbed_app.db.awrite(work, actor=who.actor)


@post("/api/v1/spec-form", opt=READ, status_code=200, name="spec_form", operation_id="spec_form")
async def spec_form(data: FormRequest, trackbed_app: App, who: Scope) -> FormView:
    """A file as text, as values and as the fields of a form; given values go into the text, whose comments stay."""
    if len(data.text.encode()) > MAX_TEXT_BYTES:
        raise TooLarge("spec_file_too_large", path="text", limit="256 KiB")
    return await trackbed_app.db.aread(lambda tx: form_view(tx, who, data))


@post("/api/v1/spec-text", opt=READ, status_code=200, name="read_spec", operation_id="read_spec")
async def read_spec(data: SpecText, who: Scope) -> SpecRead:
    """A spec as text and as values: what an editor and a form show of one another, with the faults and their lines."""
    if data.text is not None and len(data.text.encode()) > MAX_TEXT_BYTES:
        raise TooLarge("spec_file_too_large", path="text", limit="256 KiB")
    return await asyncio.to_thread(both_forms, data)


def both_forms(data: SpecText) -> SpecRead:
    if data.text is not None:
        text = data.text if data.values is None else with_values(data.text, data.values)
        loaded = specs.read(text)
    else:
        values = data.values or {}
        loaded, text = specs.from_values(values), to_yaml(values) if values else ""
    faults = [FaultView(code=one.code, field=one.field, line=one.line, params=one.params) for one in loaded.faults]
    return SpecRead(text=text, values=loaded.values, spec=loaded.spec, faults=faults, warnings=loaded.warnings)


routes: list[Any] = [list_all, show, resolve, add, read_spec, spec_form]
