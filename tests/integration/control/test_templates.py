"""Templates on the server: versions without gaps, stale writes refused, specs resolved with the version pinned."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from control_world import World

from trackbed.base.errors import BadInput, Conflict, Denied, NotFound
from trackbed.domain.scope import Role, Scope
from trackbed.server.flows import reproduce, submit
from trackbed.wire.runs import SubmitReply, SubmitRequest
from trackbed.wire.templates import TemplateVersionView
from trackbed.workflow import spec as specs
from trackbed.workflow import templates
from trackbed.workflow.template import read_template

TEXT = """\
name: train
spec: {run: 'python t.py {{params.lr}}', params: {lr: 0.1}, resources: {cards: 2}}
required: [description]
locked: [params.lr]
"""


def add(
    world: World, text: str = TEXT, *, expected: int | None = None, scope: Scope | None = None
) -> TemplateVersionView:
    who = scope or world.ann
    read, faults = read_template(text)
    assert faults == []
    return world.write(lambda tx: templates.add(tx, who, read, text, expected=expected), who.actor)


def ask(world: World, text: str, *sets: str, dry_run: bool = False) -> SubmitReply:
    """As the CLI does: what the file says goes along, the server judges it with its template."""
    loaded = specs.read(text, sets)
    request = SubmitRequest(
        spec=loaded.spec, values=loaded.values, set_fields=loaded.set_fields, dry_run=dry_run
    )  # fmt: skip
    try:
        return asyncio.run(submit.submit(world.app, world.ann, request))
    except BadInput as error:
        raise specs.wrong([loaded.placed(one) for one in error.faults]) from None


def test_versions_are_numbered_without_gaps_and_never_change(world: World) -> None:
    assert add(world).version == 1
    assert add(world).unchanged, "the same text again is the version that it is"
    changed = TEXT.replace("0.1", "0.2")
    assert add(world, changed, expected=1).version == 2
    with pytest.raises(Conflict) as refused:
        add(world, TEXT + "description: x\n", expected=1)
    assert (refused.value.code, refused.value.params["latest"]) == ("template_moved", 2)
    found = world.app.db.read(lambda tx: templates.show(tx, world.ann, "train"))
    assert [(one.version, one.text) for one in found.versions] == [(2, changed), (1, TEXT)]
    assert [one.latest for one in world.app.db.read(lambda tx: templates.list_templates(tx, world.ann))] == [2]


def test_of_writers_who_saw_the_same_version_one_wins(world: World) -> None:
    add(world)

    def write(n: int) -> bool:
        try:
            add(world, TEXT + f"description: writer {n}\n", expected=1)
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(write, range(8))) == 1
    with ThreadPoolExecutor(4) as pool:
        numbers = list(pool.map(lambda n: add(world, TEXT + f"description: any {n}\n").version, range(8)))
    assert sorted(numbers) == list(range(3, 11))


def test_a_spec_is_template_below_file_below_set_and_the_version_is_pinned(world: World) -> None:
    add(world)
    reply = ask(world, "template: train\ndescription: why\nname: mine\n", "seed=3")
    spec = reply.spec
    assert (spec.template, spec.params, spec.name, spec.seed) == ("train@1", {"lr": 0.1}, "mine", 3)
    assert spec.resources.cards == 2
    add(world, TEXT.replace("0.1", "0.2"))
    assert world.app.db.read(lambda tx: reproduce.reproduction(tx, world.ann, reply.run_id)).spec.template == "train@1"
    assert ask(world, "template: train@1\ndescription: why\n").spec.params == {"lr": 0.1}
    assert ask(world, "template: train\ndescription: why\n").spec.params == {"lr": 0.2}


def test_a_dry_run_shows_every_value_with_its_origin_and_makes_nothing(world: World) -> None:
    add(world)
    reply = ask(world, "template: train\ndescription: why\n", "seed=3", dry_run=True)
    found = {one.field: (one.value, one.origin) for one in reply.resolved}
    assert found["params.lr"] == (0.1, "template") and found["description"] == ("why", "file")
    assert found["seed"] == (3, "set") and found["determinism"] == ("exact", "default")
    assert reply.run_id == "" and reply.spec.template == "train@1"
    plain = ask(world, "run: x\n", "seed=3", dry_run=True)
    assert {one.field: one.origin for one in plain.resolved if one.origin != "default"} == {
        "run": "file",
        "seed": "set",
    }


def test_every_fault_is_told_at_once_with_field_and_line(world: World) -> None:
    add(world)
    text = "template: train@1\nname: a b\nparams:\n  lr: 0.3\ndata: {corpus: nothing@1}\n"
    with pytest.raises(BadInput) as refused:
        ask(world, text)
    assert {(one.code, one.field, one.line) for one in refused.value.faults} >= {
        ("template_locked", "params.lr", 4), ("template_required", "description", 1), ("dataset_unknown", "data.corpus", 5),
    }  # fmt: skip
    with pytest.raises(BadInput) as unknown:
        ask(world, "seed: 1\ntemplate: trian@1\n")
    assert [(one.code, one.field, one.line) for one in unknown.value.faults] == [("template_unknown", "template", 2)]
    with pytest.raises(BadInput) as later:
        ask(world, "template: train@9\ndescription: why\n")
    assert [one.code for one in later.value.faults] == ["template_version_unknown"]


def test_a_template_that_is_named_was_kept_to(world: World) -> None:
    """A spec in full cannot say that it is one of a template; a reproduction of such a run may."""
    add(world)
    with pytest.raises(BadInput) as refused:
        world.submit(run="x", template="train@1")
    assert [one.code for one in refused.value.faults] == ["template_needs_file"]
    run = ask(world, "template: train\ndescription: why\n").run_id
    request = world.app.db.read(lambda tx: reproduce.reproduction(tx, world.ann, run))
    assert asyncio.run(submit.submit(world.app, world.ann, request)).spec.template == "train@1"
    other: Any = request.spec
    other.params = {"lr": 9}
    with pytest.raises(BadInput) as changed:
        asyncio.run(submit.submit(world.app, world.ann, request))
    assert [one.code for one in changed.value.faults] == ["template_needs_file"]


def test_a_template_of_a_matrix_judges_every_run(world: World) -> None:
    add(world, "name: m\nspec: {run: 't {{params.lr}}', matrix: {lr: [1, 2]}}\n")
    assert [one.values for one in ask(world, "template: m\n").runs] == [{"lr": 1}, {"lr": 2}]


def test_templates_are_made_by_maintainers_and_read_within_their_space(world: World, tmp_path: Path) -> None:
    add(world)
    with pytest.raises(Denied):
        add(world, TEXT + "description: x\n", scope=world.person("bob", Role.MEMBER))
    stranger = world.person("eve", Role.MAINTAINER, space_id="spc_other")
    assert world.app.db.read(lambda tx: templates.list_templates(tx, stranger)) == []
    with pytest.raises(NotFound):
        world.app.db.read(lambda tx: templates.resolve(tx, stranger, "train@1"))
    with pytest.raises(NotFound):
        world.app.db.read(lambda tx: templates.show(tx, stranger, "train"))
