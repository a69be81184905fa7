"""From a folder with a script to a finished run with two commands."""

from pathlib import Path

import pytest
from e2e_harness import Installation

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SCRIPT = """\
import argparse
import pathlib
parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=3)
parser.add_argument("--out", default="out")
given = parser.parse_args()
pathlib.Path(given.out, "made.txt").write_text("x" * given.steps)
"""


def test_a_folder_is_initialised_and_submitted_as_it_is(inst: Installation, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "train.py").write_text(SCRIPT)
    assert "Wrote" in inst.cli("init", cwd=folder).stdout
    again = inst.cli("init", cwd=folder, check=False)
    assert again.returncode == 4 and "--force" in again.stderr
    assert inst.json("init", "--force", cwd=folder)["script"] == "train.py"
    detail = inst.wait(inst.submit(folder, "params.steps=5"))
    assert [(one["path"], one["size_bytes"]) for one in detail["artifacts"]] == [("made.txt", 5)]
