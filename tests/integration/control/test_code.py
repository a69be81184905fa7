"""Code of runs on the record: who changed which line, several repositories, walls between branches."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from control_world import World

from trackbed.base.errors import Conflict, NotFound
from trackbed.domain.scope import Role, Scope
from trackbed.server.flows import trees
from trackbed.server.flows.code_diff import commits_before, line_diff
from trackbed.server.flows.conflicts import open_conflicts
from trackbed.sources.blame import add_blame
from trackbed.sources.capture import Part, capture_parts
from trackbed.sources.touched import add_touched
from trackbed.wire.code import CodeDiff

ENV = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}


def git(folder: Path, *args: str, who: str = "ann") -> str:
    names = {f"GIT_{role}_{what}": who for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    command = ["git", "-C", str(folder), *args]
    return subprocess.run(command, env=ENV | names, check=True, capture_output=True, text=True).stdout.strip()


def commit(folder: Path, who: str = "ann", **files: str) -> str:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", f"by {who}", who=who)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main", "repo")
    commit(tmp_path / "repo", a="one\ntwo\nthree\n", old="x\ny\n")
    return tmp_path / "repo"


def submit(world: World, *folders: Path, name: str = "") -> str:
    """As the client does it: the tree with the blame of what is new since the runs before."""
    parts = [Part(folder, "" if at == 0 else folder.name) for at, folder in enumerate(folders)]
    found = capture_parts(parts)
    before = world.app.db.read(lambda tx: commits_before(tx, world.ann, "default", "demo"))
    for folder, facts in zip(folders, found.facts.repositories or [found.facts], strict=True):
        add_blame(folder, facts, before)
    for digest, path in found.files.items():
        world.app.store.put_blob(path, expect=digest)
    world.app.store.put_listing(found.listing)
    return world.submit(tree=found.facts, name=name).run_id


def diff(world: World, before: str, after: str, path: str = "") -> CodeDiff:
    return line_diff(world.app, world.ann, before, after, path=path)


def added(found: CodeDiff) -> dict[str, tuple[str, str, str]]:
    return {
        line.text: (line.author, line.commit, line.run) for file in found.files for line in file.lines if line.op == "+"
    }


def test_a_diff_of_two_runs_says_who_brought_each_line(world: World, repo: Path) -> None:
    first = submit(world, repo)
    by_bob = commit(repo, "bob", a="one\nTWO\nthree\nfour\n", new="n\n")
    (repo / "a.py").write_text("one\nTWO\nthree\nfour\nfive\n")
    (repo / "old.py").rename(repo / "moved.py")
    second = submit(world, repo)
    found = diff(world, first, second)
    assert [(file.path, file.change, file.path_before, file.added, file.removed) for file in found.files] == [
        ("a.py", "changed", "", 3, 1), ("moved.py", "moved", "old.py", 0, 0), ("new.py", "added", "", 1, 0),
    ]  # fmt: skip
    assert (found.before, found.after, found.added, found.removed) == ("demo#1", "demo#2", 4, 1)
    assert added(found) == {
        "TWO": ("bob", by_bob, ""), "four": ("bob", by_bob, ""), "n": ("bob", by_bob, ""),
        "five": ("ann", "", "demo#2"),
    }  # fmt: skip
    assert [(line.op, line.before, line.after, line.text) for line in found.files[0].lines] == [
        (" ", 1, 1, "one"), ("-", 2, 0, "two"), ("+", 0, 2, "TWO"), (" ", 3, 3, "three"), ("+", 0, 4, "four"),
        ("+", 0, 5, "five"),
    ]  # fmt: skip


def test_a_line_from_a_run_in_between_keeps_its_author(world: World, repo: Path) -> None:
    first = submit(world, repo)
    by_bob = commit(repo, "bob", a="one\ntwo\nthree\nfour\n")
    submit(world, repo)
    by_cid = commit(repo, "cid", a="one\ntwo\nthree\nfour\nfive\n")
    third = submit(world, repo)
    assert added(diff(world, first, third)) == {"four": ("bob", by_bob, ""), "five": ("cid", by_cid, "")}


def test_the_same_code_is_the_same_and_one_path_can_be_asked(world: World, repo: Path) -> None:
    first, again = submit(world, repo), submit(world, repo)
    assert diff(world, first, again).same
    commit(repo, a="1\n", old="2\n")
    third = submit(world, repo)
    assert [file.path for file in diff(world, first, third, "old.py").files] == ["old.py"]
    with pytest.raises(NotFound, match="nothing"):
        diff(world, first, third, "nothing.py")
    with pytest.raises(Conflict) as refused:
        diff(world, first, world.submit().run_id)
    assert refused.value.code == "run_without_tree"


def test_a_binary_and_a_mode_change_are_named_without_lines(world: World, repo: Path) -> None:
    (repo / "b.bin").write_bytes(b"\0\1")
    first = submit(world, repo)
    (repo / "b.bin").write_bytes(b"\0\2")
    (repo / "a.py").chmod(0o755)
    found = diff(world, first, submit(world, repo))
    assert [(file.path, file.change, file.unshown) for file in found.files] == [
        ("a.py", "mode", ""), ("b.bin", "changed", "binary"),
    ]  # fmt: skip


def test_every_repository_of_a_run_is_pinned_and_blamed(world: World, repo: Path, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main", "lib")
    library = tmp_path / "lib"
    commit(library, m="1\n")
    first = submit(world, repo, library)
    by_bob = commit(library, "bob", m="1\n2\n")
    second = submit(world, repo, library)
    found = diff(world, first, second)
    assert [file.path for file in found.files] == ["lib/m.py"]
    assert added(found) == {"2": ("bob", by_bob, "")}


def test_lines_far_apart_are_shown_with_what_stands_around_them(world: World, repo: Path) -> None:
    lines = [f"line {n}" for n in range(100)]
    commit(repo, a="\n".join(lines) + "\n")
    first = submit(world, repo)
    lines[10], lines[60] = "ten", "sixty"
    del lines[90]
    commit(repo, a="\n".join(lines) + "\n")
    (file,) = diff(world, first, submit(world, repo)).files
    ops = "".join(line.op for line in file.lines)
    assert ops == "@   -+   @   -+   @   -   @"
    assert [line.text for line in file.lines if line.op in "+-"] == [
        "line 10", "ten", "line 60", "sixty", "line 90",
    ]  # fmt: skip
    for line in file.lines:
        if line.op == " ":
            assert lines[line.after - 1] == line.text
            assert line.text == f"line {line.before - 1}"


def test_branches_that_touch_the_same_lines_are_shown_to_both_owners(world: World, repo: Path, tmp_path: Path) -> None:
    lines = [f"line {n}" for n in range(40)]
    commit(repo, a="\n".join(lines) + "\n")
    bob = world.person("bob", Role.MEMBER)

    def work(branch: str, who: Scope, at: int, path: str = "a") -> None:
        git(repo, "checkout", "-q", "-B", branch, "main")
        changed = [*lines]
        changed[at] = f"by {branch}"
        commit(repo, **{path: "\n".join(changed) + "\n"})
        found = capture_parts([Part(repo)])
        add_touched(repo, found.facts)
        for digest, place in found.files.items():
            world.app.store.put_blob(place, expect=digest)
        world.app.store.put_listing(found.listing)
        world.write(lambda tx: trees.hold(tx, bob, [found.facts.digest]), bob.actor)
        world.submit(tree=found.facts, scope=who)

    work("one", world.ann, 10)
    work("two", bob, 11)
    work("three", bob, 30)
    work("four", bob, 5, path="other")
    git(repo, "checkout", "-q", "main")

    def look(who: Scope, *, mine: bool = True) -> list[tuple[str, bool, set[str]]]:
        found = world.app.db.read(lambda tx: open_conflicts(tx, who, mine=mine))
        return [(one.subject, one.lines, {work.branch for work in one.works}) for one in found]

    expected = [("a.py", True, {"one", "two"}), ("a.py", False, {"one", "three"})]
    assert look(world.ann) == expected
    both = ("a.py", False, {"two", "three"})
    assert look(bob)[0] == expected[0] and all(one in look(bob) for one in (*expected, both)) and len(look(bob)) == 3
    assert look(Scope(bob.actor, {"spc_other": Role.MEMBER})) == []
