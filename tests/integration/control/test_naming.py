"""The naming rule of a project: set by a maintainer, kept at submit and at a change of name, told with an example."""

import pytest
from control_world import World

from trackbed.access import naming
from trackbed.base.errors import BadInput, Conflict, Denied
from trackbed.domain.scope import Role


def set_rule(world: World, name: str = "", tags: tuple[str, ...] = (), expected: int | None = None) -> None:
    world.write(lambda tx: naming.set_rule(tx, world.ann, "demo", space="default", name=name, tags=list(tags), expected=expected), world.ann.actor)  # fmt: skip


def faults(world: World, **spec: object) -> dict[str, tuple[str, str]]:
    with pytest.raises(BadInput) as refused:
        world.submit(**spec)
    return {fault.field: (fault.code, fault.params["example"]) for fault in refused.value.faults}


def test_names_and_tags_must_fit_and_the_message_has_an_example_that_does(world: World) -> None:
    first = world.submit(name="anything")
    set_rule(world, "{team}-{user}-{number}", ("team:{team}",))
    assert faults(world) == {"name": ("naming_name_missing", "team-ann-3"), "tags": ("naming_tag_missing", "team:team")}
    assert faults(world, name="x", tags=["team:nlp"], dry_run=True) == {"name": ("naming_name_wrong", "team-ann-3")}
    made = world.submit(name="team-ann-3", tags=["team:team"])
    assert world.run(made.run_id).name == "team-ann-3"
    assert world.submit(reproduces=first.run_id, name="anything").run_id, "what stands keeps its name, also again"
    set_rule(world)
    assert world.submit(name="anything").run_id


def test_a_rule_is_a_maintainers_and_no_change_is_lost(world: World) -> None:
    world.submit()
    writer = world.person("bob", Role.MEMBER)
    with pytest.raises(Denied):
        world.write(lambda tx: naming.set_rule(tx, writer, "demo", space="default", name="{a}", tags=[]), writer.actor)
    set_rule(world, "{a}", expected=0)
    with pytest.raises(Conflict, match="at version 1, not 0"):
        set_rule(world, "{b}", expected=0)
    with pytest.raises(BadInput) as wrong:
        set_rule(world, "{", ("{a|}",))
    assert [fault.code for fault in wrong.value.faults] == ["naming_pattern_brace", "naming_pattern_choice"]
