"""A first spec: what is in the folder decides, what is written is a good spec, and nothing is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from trackbed.cli.init import write
from trackbed.workflow import spec as specs
from trackbed.workflow.first import look

ARGPARSE = """\
import argparse
import torch
p = argparse.ArgumentParser()
p.add_argument("--lr", "-l", type=float, default=3e-4)
p.add_argument("--batch-size", type=int, default=32)
p.add_argument("--optimizer", default="adam w: #1")
p.add_argument("--output-dir", required=True)
p.add_argument("--data-dir", default="/data/x")
p.add_argument("--config", default=make())
p.add_argument("--resume", action="store_true")
p.add_argument("--layers", nargs="+", default=[1])
p.add_argument("file")
raise SystemExit("this must never be run")
"""


def folder(tmp_path: Path, **files: str) -> Path:
    place = tmp_path / "my project"
    place.mkdir()
    for name, text in files.items():
        path = place / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return place


def written(place: Path) -> specs.Loaded:
    loaded = specs.read(write(look(place)))
    assert loaded.faults == []
    return loaded


def test_options_with_a_plain_default_become_params_that_are_given_by_name(tmp_path: Path) -> None:
    place = folder(tmp_path, train_dot_py=ARGPARSE)
    spec = written(place).spec
    assert spec.params == {"lr": 3e-4, "batch_size": 32, "optimizer": "adam w: #1"}
    assert spec.run == (
        "python train.py --lr {{params.lr}} --batch-size {{params.batch_size}} --optimizer {{params.optimizer}}"
        ' --output-dir "$TRACKBED_OUTPUT"'
    )
    assert (spec.project, spec.name, spec.resources.cards) == ("my-project", "my-project", 1)


def test_torchrun_is_kept_where_a_file_beside_the_script_uses_it(tmp_path: Path) -> None:
    place = folder(
        tmp_path, train_dot_py="import torch.distributed\n", run_dot_sh="torchrun --nproc-per-node 8 \\\n  train.py\n"
    )
    spec = written(place).spec
    assert (spec.run, spec.launcher) == ("torchrun train.py", "process_per_node")


def test_a_ddp_script_without_torchrun_gets_one_process_a_card(tmp_path: Path) -> None:
    found = look(folder(tmp_path, train_dot_py="import torch\ntorch.distributed.init_process_group()\n"))
    assert (found.command, found.launcher, found.parallel, found.cards) == ("python train.py", "", True, 1)


@pytest.mark.parametrize(
    ("files", "script"),
    [
        ({"main_dot_py": "", "train_dot_py": ""}, "train.py"), ({"scripts__train_dot_py": ""}, "scripts/train.py"),
        ({"only_dot_py": "if __name__ == '__main__': pass"}, "only.py"), ({"job_dot_sh": "echo"}, "job.sh"),
        ({"a_dot_py": "", "b_dot_py": ""}, ""), ({}, ""), ({"train_dot_py": "syntax error ("}, "train.py"),
    ],
)  # fmt: skip
def test_the_program_is_the_likeliest_file(tmp_path: Path, files: dict[str, str], script: str) -> None:
    place = folder(tmp_path, **files)
    assert look(place).script == script
    assert written(place).spec.run, "there is something to edit either way"


def test_data_folders_are_proposed_and_not_assumed(tmp_path: Path) -> None:
    place = folder(tmp_path, train_dot_py=ARGPARSE, data__a_dot_txt="x", requirements_dot_txt="torch\n")
    found, text = look(place), write(look(place))
    assert found.data_folders == ["data"] and found.locks == ["requirements.txt"]
    assert "trackbed data add my-project data/" in text and '--data-dir "$TRACKBED_DATA_MY_PROJECT"' in text
    assert written(place).spec.data == {}
    uncommented = text.replace("# data: ", "data: ")
    assert specs.read(uncommented).spec.data["my-project"].ref == "my-project@latest"


@pytest.mark.parametrize("name", ["on", "3", "~", "训练", "- x", "a: b", "null"])
def test_any_name_of_a_folder_makes_a_good_spec(tmp_path: Path, name: str) -> None:
    place = tmp_path / name
    place.mkdir()
    written(place)
