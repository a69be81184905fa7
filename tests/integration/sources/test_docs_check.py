"""Documents of a tree and the commands in them that a check runs."""

from pathlib import Path

import pytest

from trackbed.base.errors import BadInput
from trackbed.sources import docs_check
from trackbed.sources.docs import commands, documents

TEXT = """\
# Start

```bash trackbed-run
echo one > made.txt
```

```bash
rm -rf /   # not marked, never run
```

~~~console trackbed-run timeout=5s
$ cat made.txt
what it prints is no command
~~~

```python trackbed-run-not
```
"""


def test_only_marked_blocks_are_commands() -> None:
    found, faults = commands(TEXT)
    assert faults == []
    assert [(one.line, one.text, one.timeout_s) for one in found] == [
        (3, "echo one > made.txt", 600.0), (11, "cat made.txt", 5.0),
    ]  # fmt: skip


def test_wrong_marks_are_told_by_line() -> None:
    _, faults = commands("```python trackbed-run\n```\n```sh trackbed-run speed=2\nx\n```\n```sh trackbed-run\nopen\n")
    assert [(one.code, one.line) for one in faults] == [
        ("docs_language", 1),
        ("docs_option", 3),
        ("docs_block_open", 6),
    ]


def test_readmes_come_first_and_other_peoples_are_left_out() -> None:
    paths = [
        "docs/b.md",
        "src/x.py",
        "README.md",
        "pkg/README.rst",
        "node_modules/y/README.md",
        "notes.md",
        "docs/img.png",
    ]
    assert documents(paths) == ["README.md", "notes.md", "pkg/README.rst", "docs/b.md"]


def test_blocks_run_in_a_copy_in_their_order_and_stop_at_the_first_failure(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(
        TEXT + "\n```sh trackbed-run\ncat nothing\n```\n```sh trackbed-run\necho never\n```\n"
    )
    ran = list(docs_check.check(tmp_path))
    assert [(one.line, one.good) for one in ran] == [(3, True), (11, True), (19, False)]
    assert "nothing" in ran[-1].said
    assert not (tmp_path / "made.txt").exists(), "the folder itself is left alone"


def test_a_command_that_does_not_end_is_ended(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("```sh trackbed-run timeout=0.2s\nsleep 30\n```\n")
    (ran,) = docs_check.check(tmp_path)
    assert (ran.status, ran.good) == (None, False)


def test_a_wrong_mark_is_refused_with_its_document(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("```ruby trackbed-run\nputs 1\n```\n")
    with pytest.raises(BadInput) as refused:
        docs_check.marked(tmp_path)
    assert [(fault.field, fault.line) for fault in refused.value.faults] == [("README.md", 1)]
