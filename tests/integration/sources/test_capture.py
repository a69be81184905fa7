"""Tree capture against real git: byte for byte, and without a trace."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from trackbed.base.errors import BadInput
from trackbed.formats.tree import decode_listing, tree_digest
from trackbed.sources import capture as capture_module
from trackbed.sources.capture import DEFAULT_IGNORES, Capture, Part, capture, capture_parts
from trackbed.storage import LocalStore
from trackbed.testing.trees import Node, read_tree, trees, write_tree

ENV = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nonexistent", "GIT_OPTIONAL_LOCKS": "0",
    "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b",
}  # fmt: skip
KEY = "AKIA" + "Z7QX4MPLK2JHG5RD"


def git(folder: Path, *args: str, check: bool = True) -> bytes:
    command = ["git", "-c", "core.protectNTFS=false", "-c", "protocol.file.allow=always", "-C", str(folder), *args]
    return subprocess.run(command, env=ENV, check=check, capture_output=True).stdout


def repository(folder: Path, files: dict[str, str] | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    for name, text in (files or {}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode())
    if files:
        commit(folder)
    return folder


def commit(folder: Path) -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "x", "--allow-empty")
    return git(folder, "rev-parse", "HEAD").decode().strip()


def trace(folder: Path) -> tuple[bytes, list[tuple[str, bytes, int, int]]]:
    """Everything about a repository that a capture must leave alone: index, refs, objects, their times and inodes.

    Only the time of a shared index may move: git itself sets it whenever it reads a split index.
    """
    inside = folder / ".git"
    files = sorted(path for path in inside.rglob("*") if path.is_file())
    return (
        git(folder, "status", "--porcelain=v2", "-z", "-uall", "--ignored"),
        [
            (
                str(path),
                path.read_bytes(),
                0 if path.name.startswith("sharedindex.") else path.stat().st_mtime_ns,
                path.stat().st_ino,
            )
            for path in files
        ],
    )


def check_out(found: Capture, folder: Path, store: LocalStore | None = None) -> dict[bytes, Node]:
    """Store a capture, write it elsewhere, read it back."""
    store = store or LocalStore(folder / "store")
    for digest, path in found.files.items():
        store.put_blob(path, expect=digest)
    assert store.put_listing(found.listing) == found.facts.digest == tree_digest(found.listing)
    store.get_tree(found.scan.info.digest, folder / "out")
    return read_tree(folder / "out")


def names_in(found: Capture) -> set[bytes]:
    return {entry.path for entry in decode_listing(found.listing)}


CHANGES: dict[str, Callable[[Path], object]] = {
    "nothing": lambda folder: None,
    "staged": lambda folder: git(folder, "add", "-A", check=False),
    "staged, then changed back": lambda folder: (git(folder, "add", "-A", check=False), git(folder, "stash", "-q", check=False)),
    "attributes": lambda folder: (folder / ".gitattributes").write_text("* text=auto eol=crlf\n*.sh filter=evil diff=evil\n"),
    "autocrlf": lambda folder: git(folder, "config", "core.autocrlf", "true"),
    "assume unchanged": lambda folder: git(
        folder, "update-index", "--assume-unchanged", "--", *git(folder, "ls-files", "-z").decode("utf-8", "surrogateescape").split("\0")[:-1], check=False
    ),
    "split index": lambda folder: git(folder, "update-index", "--split-index", check=False),
    "detached": lambda folder: git(folder, "checkout", "-q", "--detach", check=False),
    "other prefixes": lambda folder: (git(folder, "config", "diff.noprefix", "true"), git(folder, "config", "status.relativePaths", "false")),
    "untracked cache": lambda folder: git(folder, "update-index", "--untracked-cache", check=False),
    "renamed": lambda folder: git(folder, "mv", "-k", *(name for name in ("a", "b") if (folder / name).exists()), "moved", check=False),
    "case changed": lambda folder: (folder / "a").rename(folder / "A") if os.path.lexists(folder / "a") else None,
    "modes ignored": lambda folder: git(folder, "config", "core.fileMode", "false"),
    "shallow": lambda folder: (folder / ".git" / "shallow").write_bytes(git(folder, "rev-parse", "HEAD", check=False)),
    "a watcher": lambda folder: git(folder, "config", "core.fsmonitor", "/bin/false"),
    "a submodule": lambda folder: (folder / "module").exists() or nested_in(folder / "module"),
    "a repository inside": lambda folder: (folder / "inner").exists() or nested_in(folder / "inner", born=False),
    "rules": lambda folder: (folder / ".gitignore").exists() or (folder / ".gitignore").write_text("b\n*.sh\n/a/*\n!/a/b\ninner/\n"),
}  # fmt: skip


def nested_in(folder: Path, *, born: bool = True) -> None:
    repository(folder, {"in.py": "1\n"} if born else None)
    write_tree(folder / "deep", {b"run.sh": (b"x", True), b"new": {}})


def wanted_of(folder: Path, tree: dict[bytes, Node] | None = None) -> dict[bytes, Node]:
    """What a capture is to hold, found out another way: the disk without what `git check-ignore` says of each path."""
    tree = read_tree(folder) if tree is None else tree
    tracked = {one for one in git(folder, "ls-files", "-z").split(b"\0") if one}
    asked = subprocess.run(
        ["git", "-C", str(folder), "check-ignore", "--no-index", "-z", "--stdin"], env=ENV, check=False,
        input=b"\0".join(paths_of(tree)), capture_output=True,
    )  # fmt: skip
    return _wanted(folder, tree, b"", tracked, set(asked.stdout.split(b"\0"))) or {}


def paths_of(tree: dict[bytes, Node], inside: bytes = b"") -> list[bytes]:
    found = [inside + name for name in tree]
    for name, node in tree.items():
        if isinstance(node, dict) and b".git" not in node:
            found += paths_of(node, inside + name + b"/")
    return found


def _wanted(
    folder: Path, tree: dict[bytes, Node], inside: bytes, tracked: set[bytes], ignored: set[bytes]
) -> dict[bytes, Node] | None:
    kept: dict[bytes, Node] = {}
    for name, node in tree.items():
        path = inside + name
        holds_tracked = any(one.startswith(path + b"/") for one in tracked)
        out = path in ignored and path not in tracked and not holds_tracked
        if out or (name in DEFAULT_IGNORES and isinstance(node, dict) and not holds_tracked):
            continue
        if isinstance(node, dict) and b".git" in node:
            within = {other: inner for other, inner in node.items() if other != b".git"}
            kept[name] = wanted_of(folder / os.fsdecode(path), within)
        elif isinstance(node, dict) and node:
            if below := _wanted(folder, node, path + b"/", tracked, ignored):
                kept[name] = below
        else:
            kept[name] = node
    return kept or None


def test_the_captured_tree_equals_the_working_tree_and_git_sees_no_trace(tmp_path: Path):
    store = LocalStore(tmp_path / "store")

    @settings(
        max_examples=60,
        deadline=None,
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(trees(), trees(), st.booleans(), st.lists(st.sampled_from(sorted(CHANGES)), max_size=3, unique=True))
    def holds(before: dict[bytes, Node], after: dict[bytes, Node], commits: bool, changes: list[str]) -> None:
        with tempfile.TemporaryDirectory(dir=tmp_path) as name:
            folder = Path(name) / "work"
            write_tree(folder, before)
            repository(folder)
            git(folder, "config", "filter.evil.clean", f"tee {name}/cleaned")
            git(folder, "config", "diff.evil.textconv", f"tee {name}/converted")
            git(folder, "add", "-A", check=False)
            if commits:
                git(folder, "commit", "-qm", "x", check=False)
            for entry in list(folder.iterdir()):
                if entry.name != ".git":
                    shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
            write_tree(folder, after)
            for change in changes:
                CHANGES[change](folder)
            expected, state = wanted_of(folder), trace(folder)
            (Path(name) / "cleaned").unlink(missing_ok=True)
            for _ in range(2):  # read, and remembered
                found = capture(folder, cache=Path(name) / "cache")
                assert not (Path(name) / "cleaned").exists()
                assert not (Path(name) / "converted").exists()
            assert trace(folder) == state
            assert check_out(found, Path(name), store) == expected

    holds()


def test_a_file_that_changes_after_it_was_remembered_is_read_again(tmp_path: Path):
    work, cache = repository(tmp_path / "work", {"a.py": "1\n", "b.py": "2\n"}), tmp_path / "cache"
    before = 1_600_000_000
    os.utime(work / "a.py", (before, before))

    def settled() -> Capture:
        """As if the files had been written long ago: their lines are kept."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("trackbed.sources.known._TICK_NS", -(10**12))
            return capture(work, cache=cache)

    first = settled()
    assert settled().listing == first.listing == capture(work).listing
    (work / "a.py").write_text("3\n")
    os.utime(work / "a.py", (before, before))  # the same size and time: the change time still tells
    again = settled()
    assert again.facts.digest == capture(work).facts.digest != first.facts.digest
    (work / "b.py").chmod(0o755)
    assert settled().facts.digest == capture(work).facts.digest != again.facts.digest


def test_a_secret_is_found_in_a_file_that_was_let_through_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    work = repository(tmp_path / "work", {"conf.py": KEY})
    monkeypatch.setattr("trackbed.sources.known._TICK_NS", -(10**12))
    capture(work, allow=["conf.py"], cache=tmp_path / "cache")
    with pytest.raises(BadInput, match="looks like a secret"):
        capture(work, cache=tmp_path / "cache")


def test_unchanged_files_are_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    work = repository(tmp_path / "work", {"a.py": "1\n", "b.py": "2\n"})
    monkeypatch.setattr("trackbed.sources.known._TICK_NS", -(10**12))
    capture(work, cache=tmp_path / "cache")
    (work / "b.py").write_text("changed\n")
    opened: list[bytes] = []
    real = capture_module.open_source
    monkeypatch.setattr(capture_module, "open_source", lambda place: (opened.append(place), real(place))[1])
    capture(work, cache=tmp_path / "cache")
    assert [os.path.basename(place) for place in opened] == [b"b.py"]  # noqa: PTH119 - bytes


def test_ignored_files_are_listed_and_come_along_when_asked(tmp_path: Path):
    work = repository(tmp_path / "work", {"a.py": "1\n", ".gitignore": "*.csv\nbuild/\n"})
    write_tree(work / "build", {b"lib": {b"x.so": (b"1", True)}, b"y": (b"2", False)})
    (work / "small.csv").write_text("1,2\n")
    plain = capture(work).facts
    assert (plain.ignored, plain.ignored_paths, plain.ignored_more) == (3, ["build/", "small.csv"], 0)
    found = capture(work, include=["*.csv", "build/lib"])
    assert names_in(found) == {b"a.py", b".gitignore", b"small.csv", b"build/lib/x.so"}
    with pytest.raises(BadInput, match="nothing there") as refused:
        capture(work, include=["nothing there"])
    assert refused.value.code == "sources_include_nothing"


def test_pointers_and_submodules_that_were_not_fetched_are_named(tmp_path: Path):
    library = repository(tmp_path / "library", {"lib.py": "1\n"})
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 12345\n"
    work = repository(tmp_path / "work", {"w.bin": pointer, "about.md": "see https://git-lfs.github.com/spec/v1\n"})
    git(work, "submodule", "add", "-q", str(library), "sub")
    commit(work)
    git(work, "submodule", "deinit", "-q", "-f", "sub")
    facts = capture(work).facts
    assert (facts.lfs_pointers, facts.missing_submodules) == (["w.bin"], ["sub"])


def test_commits_that_were_not_pushed_are_named_and_their_content_is_in_the_tree(tmp_path: Path):
    origin = repository(tmp_path / "origin", {"a.py": "1\n"})
    git(tmp_path, "clone", "-q", str(origin), "work")
    work = tmp_path / "work"
    assert capture(work).facts.unpushed == []
    (work / "a.py").write_text("2\n")
    head = commit(work)
    found = capture(work)
    assert (found.facts.unpushed_count, found.facts.dirty) == (1, 0)
    assert found.facts.unpushed[0].endswith(" x") and head.startswith(found.facts.unpushed[0][:-2])
    assert check_out(found, tmp_path)[b"a.py"] == (b"2\n", False)


def test_several_repositories_make_one_tree_each_with_its_own_commit(tmp_path: Path):
    work = repository(tmp_path / "work", {"a.py": "1\n"})
    library = repository(tmp_path / "library", {"lib.py": "2\n", "deep/m.py": "3\n"})
    (library / "lib.py").write_text("changed\n")
    found = capture_parts([Part(work), Part(library, "lib")])
    assert names_in(found) == {b"a.py", b"lib/lib.py", b"lib/deep/m.py"}
    assert check_out(found, tmp_path)[b"lib"][b"lib.py"] == (b"changed\n", False)  # type: ignore[index]
    whole = found.facts
    assert [one.name for one in whole.repositories] == ["", "lib"]
    assert [one.commit for one in whole.repositories] == [
        git(folder, "rev-parse", "HEAD").decode().strip() for folder in (work, library)
    ]
    assert whole.repositories[1].digest == capture(library).facts.digest
    assert (whole.files, whole.dirty, whole.commit) == (3, 1, whole.repositories[0].commit)
    assert [one.dirty for one in whole.repositories] == [0, 1]
    assert decode_listing(found.listing), "canonical"


def test_two_repositories_do_not_share_a_place(tmp_path: Path):
    work = repository(tmp_path / "work", {"a.py": "1\n", "lib/mine.py": "1\n"})
    library = repository(tmp_path / "library", {"lib.py": "2\n"})
    with pytest.raises(BadInput) as refused:
        capture_parts([Part(work), Part(library, "lib")])
    assert refused.value.code == "sources_part_taken"


def test_the_facts_say_where_it_came_from(tmp_path: Path):
    work = repository(tmp_path / "work", {"a.py": "1\n", "b.py": "2\n", ".gitignore": "*.log\nbuild/\n"})
    head = git(work, "rev-parse", "HEAD").decode().strip()
    git(work, "remote", "add", "origin", "https://person:s3cret@example.com/team/code.git")
    (work / "a.py").write_text("one\n")
    (work / "new.py").write_text("new\n")
    (work / "blob.bin").write_bytes(b"\0\1\2")
    (work / "b.py").unlink()
    (work / "x.log").touch()
    write_tree(work / "build", {b"1": (b"", False), b"d": {b"2": (b"", False)}})
    facts = capture(work).facts
    assert (facts.commit, facts.branch, facts.remote) == (head, "main", "https://example.com/team/code.git")
    assert (facts.dirty, facts.untracked, facts.ignored, facts.files) == (4, 2, 3, 4)
    assert "-1\n+one\n" in facts.patch
    assert "+new" in facts.patch
    assert "Binary files /dev/null and b/blob.bin differ" in facts.patch
    assert "deleted file" in facts.patch
    assert facts.patch_cut_bytes == 0


def test_the_same_files_give_the_same_digest_elsewhere(tmp_path: Path):
    one = repository(tmp_path / "one", {"a.py": "1\n", "d/b.py": "2\n"})
    git(tmp_path, "clone", "-q", str(one), "two")
    (tmp_path / "three").mkdir()
    write_tree(tmp_path / "three" / "plain", read_tree(one))
    digests = {capture(folder).facts.digest for folder in (one, tmp_path / "two", tmp_path / "three" / "plain")}
    assert len(digests) == 1


def test_a_patch_that_is_too_long_says_how_much_is_missing(tmp_path: Path):
    work = repository(tmp_path / "work", {"a": "1\n"})
    (work / "long").write_text("a line of text\n" * 100_000)
    facts = capture(work).facts
    assert len(facts.patch) <= 256 * 1024
    assert facts.patch_cut_bytes > 1_000_000


def test_a_secret_that_was_taken_out_is_not_in_the_patch(tmp_path: Path):
    work = repository(tmp_path / "work", {"a.py": f"key = '{KEY}'\nx = 1\n"})
    (work / "a.py").write_text("x = 1\n")
    patch = capture(work).facts.patch
    assert KEY not in patch
    assert "-[left out: AWS access key]" in patch


def test_a_folder_below_the_top_is_captured_alone(tmp_path: Path):
    work = repository(tmp_path / "work", {"a.py": "1\n", "sub/b.py": "2\n", "sub/d/c.py": "3\n"})
    (work / "top.py").touch()
    (work / "sub" / "new.py").touch()
    found = capture(work / "sub")
    assert names_in(found) == {b"b.py", b"d/c.py", b"new.py"}
    assert (found.facts.dirty, found.facts.commit) == (1, git(work, "rev-parse", "HEAD").decode().strip())


def test_a_folder_that_the_repository_around_it_ignores_is_a_plain_folder(tmp_path: Path):
    outer = repository(tmp_path / "home", {".gitignore": "*\n"})
    (outer / "proj").mkdir()
    (outer / "proj" / "a.py").write_text("1\n")
    found = capture(outer / "proj")
    assert names_in(found) == {b"a.py"}
    assert found.facts.commit == ""


def test_without_git_a_folder_is_taken_whole_but_for_what_nobody_means(tmp_path: Path):
    write_tree(
        tmp_path / "work",
        {
            b"a.py": (b"1", False), b".gitignore": (b"*.py", False), b"e": {}, b".venv": {b"x": (b"", False)},
            b"d": {b"__pycache__": {b"y": (b"", False), b"z": (b"", False)}}, b"node_modules": {b"w": (b"", False)},
        },
    )  # fmt: skip
    found = capture(tmp_path / "work")
    assert names_in(found) == {b"a.py", b".gitignore", b"e"}
    assert (found.facts.ignored, found.facts.commit, found.facts.files) == (4, "", 2)


def test_an_environment_that_nobody_ignored_stays_out_of_a_repository_too(tmp_path: Path):
    work = repository(tmp_path / "work", {"a.py": "1\n"})
    write_tree(work / ".venv", {b"bin": {b"python": b"/usr/bin/python3"}})
    write_tree(work / "p" / "__pycache__", {b"a.pyc": (b"1", False)})
    found = capture(work)
    assert names_in(found) == {b"a.py"}
    assert (found.facts.dirty, found.facts.ignored) == (0, 2)


def test_repositories_inside_are_captured_as_files_and_named(tmp_path: Path):
    library = repository(tmp_path / "library", {"lib.py": "1\n", ".gitignore": "*.tmp\n"})
    work = repository(tmp_path / "work", {"a.py": "1\n"})
    git(work, "submodule", "add", "-q", str(library), "sub")
    git(work, "submodule", "add", "-q", str(library), "gone")
    commit(work)
    git(work, "submodule", "deinit", "-q", "-f", "gone")
    repository(work / "nested", {"n.py": "1\n", "deep/m.py": "2\n"})
    repository(work / "unborn")
    (work / "unborn" / "u.py").touch()
    (work / "sub" / "lib.py").write_text("changed\n")
    (work / "sub" / "x.tmp").touch()
    (work / "sub" / "new.py").touch()
    state = trace(work)
    found = capture(work)
    assert trace(work) == state
    assert names_in(found) == {
        b".gitmodules", b"a.py", b"gone", b"nested/deep/m.py", b"nested/n.py", b"sub/.gitignore", b"sub/lib.py", b"sub/new.py", b"unborn/u.py",
    }  # fmt: skip
    assert [name.partition("@")[0] for name in found.facts.nested] == ["nested", "sub", "unborn"]
    assert check_out(found, tmp_path)[b"sub"][b"lib.py"] == (b"changed\n", False)  # type: ignore[index]


def test_a_worktree_of_a_repository_is_a_working_folder(tmp_path: Path):
    work = repository(tmp_path / "work", {"a.py": "1\n"})
    git(work, "worktree", "add", "-q", str(tmp_path / "other"), "-b", "side")
    (tmp_path / "other" / "b.py").touch()
    found = capture(tmp_path / "other")
    assert names_in(found) == {b"a.py", b"b.py"}
    assert (found.facts.branch, found.facts.dirty) == ("side", 1)


def test_the_setting_of_a_hook_does_not_lead_git_astray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    work = repository(tmp_path / "work", {"a.py": "1\n"})
    other = repository(tmp_path / "other", {"b.py": "1\n"})
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
    assert names_in(capture(work)) == {b"a.py"}


def test_programs_that_the_repository_names_are_not_started(tmp_path: Path):
    work = repository(tmp_path / "work", {"a.py": "1\n", ".gitattributes": "*.py filter=x diff=y\n"})
    marker = tmp_path / "started"
    evil = tmp_path / "evil.sh"
    evil.write_text(f"#!/bin/sh\ntouch {marker}\ncat\n")
    evil.chmod(0o755)
    for name in (
        "core.fsmonitor",
        "filter.x.clean",
        "filter.x.process",
        "diff.y.textconv",
        "diff.y.command",
        "diff.external",
        "core.pager",
    ):
        git(work, "config", name, str(evil))
    git(work, "config", "filter.x.required", "true")
    (work / ".git" / "hooks").mkdir(exist_ok=True)
    for hook in ("post-index-change", "pre-commit", "fsmonitor-watchman"):
        shutil.copy(evil, work / ".git" / "hooks" / hook)
    (work / "a.py").write_text("2\n")
    (work / "b.py").write_text("3\n")
    found = capture(work)
    assert found.facts.dirty == 2
    assert "+2" in found.facts.patch
    assert not marker.exists()


def test_every_thing_that_must_stay_is_told_at_once(tmp_path: Path):
    work = repository(tmp_path / "work", {"a.py": "1\n"})
    (work / "conf.py").write_text(f"# settings\nKEY = '{KEY}'\n")
    (work / "id_rsa").touch()
    (work / ".env").write_text("X=1\n")
    (work / ".env.example").write_text("X=\n")
    (work / "weights.bin").write_bytes(b"\0" * (10 * 1024 * 1024 + 1))
    (work / "data").symlink_to("/mnt/data")
    os.mkfifo(work / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(work / "s"))
        with pytest.raises(BadInput) as refused:
            capture(work)
    text = str(refused.value)
    assert refused.value.code == "sources_capture_refused"
    for part in ("conf.py:2 looks like a secret (AWS access key)", "id_rsa looks like", ".env looks like",
                 "weights.bin has 10485761 bytes", "trackbed data add NAME weights.bin", "The link data points outside"):  # fmt: skip
        assert part in text
    assert "example" not in text


def test_what_is_allowed_by_name_passes(tmp_path: Path):
    work = repository(tmp_path / "work", {"a.py": "1\n"})
    (work / "conf.py").write_text(KEY)
    (work / "keys").mkdir()
    (work / "keys" / "id_rsa").touch()
    (work / "w.bin").write_bytes(b"\0" * 2000)
    found = capture(work, max_file_bytes=1000, allow=["conf.py", "keys/", "*.bin"])
    assert {b"conf.py", b"keys/id_rsa", b"w.bin"} <= names_in(found)


def test_fifty_thousand_files_in_ignored_folders_do_not_slow_it(tmp_path: Path):
    work = repository(tmp_path / "work", {"a.py": "1\n", ".gitignore": "data/\n"})
    write_tree(work / "data", {b"%d" % n: (b"", False) for n in range(5000)})
    assert capture(work).facts.ignored == 5000


def test_a_folder_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(BadInput, match="is not a folder"):
        capture(tmp_path / "no")
