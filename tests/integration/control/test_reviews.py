"""Reviews: what is protected passes only with an approval by somebody else, of exactly these bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from control_world import World

from trackbed.base.errors import BadInput, Conflict, Denied, NotFound
from trackbed.domain.scope import Role, Scope
from trackbed.server.flows import reviewed, trees
from trackbed.sources import reviews
from trackbed.sources.capture import capture
from trackbed.wire.reviews import ProtectionRequest, ReviewItem, ReviewRequest, ReviewView
from trackbed.wire.runs import TreeFacts


def put(world: World, folder: Path, **files: str) -> TreeFacts:
    """A folder as a tree in the store."""
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)
    found = capture(folder)
    for digest, path in found.files.items():
        world.app.store.put_blob(path, expect=digest)
    world.app.store.put_listing(found.listing)
    sender = Scope(world.ann.actor, {world.space_id: Role.MEMBER})
    world.write(lambda tx: trees.hold(tx, sender, [found.facts.digest]), sender.actor)
    return found.facts


def items_of(world: World, tree: TreeFacts) -> list[ReviewItem]:
    entries = world.app.store.read_listing(tree.digest)  # type: ignore[arg-type]
    return [ReviewItem(kind="path", subject=entry.path.decode(), digest=entry.digest) for entry in entries]


def protect(world: World, pattern: str = "conf.yaml", **more: Any) -> Any:
    asked = ProtectionRequest(kind=more.pop("kind", "path"), pattern=pattern, **more)
    return world.write(lambda tx: reviews.protect(tx, world.ann, asked), world.ann.actor)


def ask(world: World, tree: TreeFacts, who: Scope, *, commit: str = "") -> ReviewView:
    asked = ReviewRequest(items=items_of(world, tree), title="new rate", tree=tree.digest, commit=commit)
    return reviewed.request(world.app, who, asked)


def say(world: World, found: ReviewView, who: Scope, decision: str = "approve", text: str = "") -> ReviewView:
    return world.write(lambda tx: reviews.say(tx, who, found.id, decision, digest=found.digest, text=text), who.actor)


def test_a_run_with_protected_code_that_nobody_approved_is_refused_with_the_way_out(
    world: World, tmp_path: Path
) -> None:
    tree = put(world, tmp_path / "work", conf="lr: 1\n", free="x\n")
    assert world.submit(tree=tree).run_id
    protect(world, approvers=["bob", "cid"])
    with pytest.raises(BadInput) as refused:
        world.submit(tree=tree)
    (fault,) = refused.value.faults
    assert (fault.code, fault.field) == ("review_missing", "code")
    assert "conf.yaml" in fault.text() and "bob, cid" in fault.text() and "trackbed review request" in fault.text()
    assert "conf.yaml" in fault.text("zh")


def test_an_approval_by_somebody_else_lets_it_pass_and_stays_on_the_run_and_the_commit(
    world: World, tmp_path: Path
) -> None:
    protect(world)
    tree = put(world, tmp_path / "work", conf="lr: 1\n")
    bob, cid = world.person("bob", Role.MEMBER), world.person("cid", Role.MEMBER)
    found = ask(world, tree, bob, commit="c0ffee" * 6 + "c0ff")
    with pytest.raises(Denied) as own:
        say(world, found, bob)
    assert own.value.code == "review_own"
    say(world, found, cid, "comment", "why one?")
    approved = say(world, found, cid, text="fine")
    assert (approved.state, approved.needed) == ("approved", 0)
    run_id = world.submit(tree=tree, scope=bob).run_id
    (kept,) = world.app.db.read(lambda tx: reviews.list_reviews(tx, bob, run_id=run_id))
    assert [(one.person, one.decision, one.text, one.digest) for one in kept.words] == [
        ("cid", "comment", "why one?", found.digest), ("cid", "approve", "fine", found.digest),
    ]  # fmt: skip
    by_commit = world.app.db.read(lambda tx: reviews.list_reviews(tx, bob, commit="c0ffee"))
    assert [one.id for one in by_commit] == [found.id]
    kinds = [event.kind for event in world.app.db.events(0, limit=1000) if event.kind.startswith("review.")]
    assert kinds == ["review.requested", "review.commented", "review.approved"]


def test_an_approval_is_of_these_bytes_and_of_no_others(world: World, tmp_path: Path) -> None:
    protect(world)
    bob = world.person("bob", Role.MEMBER)
    tree = put(world, tmp_path / "work", conf="lr: 1\n")
    say(world, ask(world, tree, bob), world.ann)
    other = put(world, tmp_path / "work", conf="lr: 2\n")
    with pytest.raises(BadInput):
        world.submit(tree=other)
    elsewhere = put(world, tmp_path / "copy", conf="lr: 1\n", free="more\n")
    assert world.submit(tree=elsewhere).run_id, "the same bytes in another tree are approved"
    second = ask(world, other, bob)
    shown = reviewed.show_with_files(world.app, world.ann, second.id)
    assert [(line.op, line.text) for line in shown.files[0].lines] == [("-", "lr: 1"), ("+", "lr: 2")]


def test_only_those_who_are_named_decide_and_as_many_as_asked(world: World, tmp_path: Path) -> None:
    protect(world, "conf*", approvals=2, approvers=["bob", "cid", "ann"])
    bob, cid, dan = (world.person(name, Role.MEMBER) for name in ("bob", "cid", "dan"))
    found = ask(world, put(world, tmp_path / "work", conf="1\n"), dan)
    assert found.approvers == ["ann", "bob", "cid"]
    eve = world.person("eve", Role.MEMBER)
    with pytest.raises(Denied) as refused:
        say(world, found, eve)
    assert refused.value.code == "review_not_approver"
    assert (say(world, found, bob).state, say(world, found, bob).needed) == ("open", 1), "twice by one is once"
    assert say(world, found, cid).state == "approved"
    with pytest.raises(NotFound):
        say(world, found, Scope(eve.actor, {}))
    with pytest.raises(Denied):
        say(world, found, Scope(eve.actor, {world.space_id: Role.VIEWER}))


def test_a_rejected_review_stays_rejected_and_a_decision_names_what_it_is_of(world: World, tmp_path: Path) -> None:
    protect(world)
    bob = world.person("bob", Role.MEMBER)
    tree = put(world, tmp_path / "work", conf="1\n")
    found = ask(world, tree, bob)
    stale = "b3:" + "0" * 64
    with pytest.raises(Conflict) as moved:
        world.write(lambda tx: reviews.say(tx, world.ann, found.id, "approve", digest=stale), world.ann.actor)
    assert (moved.value.code, moved.value.params["stands"]) == ("review_moved", found.digest[:15])
    assert say(world, found, world.ann, "reject", "too high").state == "rejected"
    with pytest.raises(Conflict):
        say(world, found, world.ann)
    with pytest.raises(BadInput):
        world.submit(tree=tree)
    again = ask(world, tree, bob)
    assert again.id != found.id and say(world, again, world.ann).state == "approved"


def test_a_stale_change_of_a_rule_is_refused_with_both_sides(world: World) -> None:
    made = protect(world, approvals=1)
    assert made.version == 1
    with pytest.raises(Conflict) as refused:
        protect(world, approvals=2)
    assert (refused.value.params["given"], refused.value.params["version"], refused.value.params["approvals"]) == (
        0,
        1,
        1,
    )
    assert protect(world, approvals=2, version=1).approvals == 2
    bob, rule = world.person("bob", Role.MEMBER), ProtectionRequest(kind="path", pattern="x")
    with pytest.raises(Denied):
        world.write(lambda tx: reviews.protect(tx, bob, rule), bob.actor)
    with pytest.raises(BadInput) as wrong:
        protect(world, "", approvals=0, approvers=[])
    assert [fault.field for fault in wrong.value.faults] == ["pattern", "approvals"]


def test_another_space_sees_and_needs_nothing_of_it(world: World, tmp_path: Path) -> None:
    protect(world)
    found = ask(world, put(world, tmp_path / "work", conf="1\n"), world.ann)
    stranger = Scope(world.person("zoe", Role.MEMBER).actor, {"spc_other": Role.MAINTAINER})
    for look in (lambda tx: reviews.list_reviews(tx, stranger), lambda tx: reviews.protections(tx, stranger)):
        assert world.app.db.read(look) == []
    with pytest.raises(NotFound):
        world.app.db.read(lambda tx: reviews.show(tx, stranger, found.id))
