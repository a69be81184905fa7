"""A job of three stages with real processes: what was done before is not done again, and the record says why."""

import json
from pathlib import Path
from typing import Any

import pytest
from e2e_harness import Installation, project_from

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def stages(detail: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in detail["stages"]}


def test_a_change_repeats_only_what_depends_on_it(inst: Installation, tmp_path: Path) -> None:
    folder = project_from("stages", tmp_path)
    first = inst.wait(inst.submit(folder))
    assert [one["stage"] for one in first["attempts"]] == ["prep", "train", "eval"]
    assert all(one["cache"] == "miss" and one["reason"]["code"] == "cache_first" for one in stages(first).values())

    again = inst.show(inst.submit(folder))
    assert again["run"]["state"] == "finished" and again["attempts"] == []
    for name, one in stages(again).items():
        assert (one["cache"], one["products"]) == ("hit", stages(first)[name]["products"])
    assert f"taken from {first['run']['ref']}" in inst.cli("show", again["run"]["id"]).stdout

    other = inst.wait(inst.submit(folder, "params.lr=0.04"))
    assert [one["stage"] for one in other["attempts"]] == ["train", "eval"]
    assert stages(other)["train"]["reason"]["params"]["differs"] == "params.lr: 0.05 → 0.04"
    assert "params.lr: 0.05 → 0.04" in inst.cli("show", other["run"]["id"]).stdout

    (folder / "evaluate.py").write_text((folder / "evaluate.py").read_text() + "# a comment\n")
    changed = inst.wait(inst.submit(folder))
    assert [one["stage"] for one in changed["attempts"]] == ["eval"]
    assert stages(changed)["eval"]["reason"]["params"]["differs"] == "files"

    every = json.loads(inst.cli("submit", "--no-cache", "--json", cwd=folder).stdout)["run_id"]
    full = inst.wait(every)
    assert [one["stage"] for one in full["attempts"]] == ["prep", "train", "eval"]
    assert stages(full)["train"]["products"] == stages(first)["train"]["products"], "the same inputs, the same line"


def test_a_stage_that_fails_is_named_and_a_retry_goes_on_from_it(inst: Installation, tmp_path: Path) -> None:
    folder = project_from("stages", tmp_path)
    (folder / "train.py").write_text("import pathlib\npathlib.Path('half').write_text('x')\n")
    failed = inst.wait(inst.submit(folder, "params.lines=50"), "failed")
    reason = failed["run"]["reason"]
    assert (reason["code"], reason["params"]["stage"], reason["params"]["products"]) == (
        "products_missing",
        "train",
        "line",
    )
    assert (stages(failed)["train"]["state"], stages(failed)["prep"]["state"]) == ("failed", "done")
    assert "line" in inst.cli("show", failed["run"]["id"]).stdout
    inst.cli("retry", failed["run"]["id"])
    more = inst.wait(failed["run"]["id"], "failed")
    assert [one["stage"] for one in more["attempts"]] == ["prep", "train", "train"]


def test_a_matrix_shares_its_first_stage(inst: Installation, tmp_path: Path) -> None:
    folder = project_from("stages", tmp_path)
    reply = inst.json("submit", "--set", "params.lines=30", "--set", "matrix={lr: [0.01, 0.02], seed: [1]}", cwd=folder)
    details = [inst.wait(one["run_id"]) for one in reply["runs"]]
    assert [one["spec"]["params"]["lr"] for one in details] == [0.01, 0.02]
    assert all(reply["group"] in one["run"]["tags"] for one in details)
    assert len({stages(one)["prep"]["products"]["points"] for one in details}) == 1
