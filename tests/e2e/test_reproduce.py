"""reproduce --verify of a plain script and of a stage graph: bit-equal; and of one that is not, the first differing thing by name."""

import json
from pathlib import Path
from typing import Any

import pytest
from e2e_harness import Installation, installation, project_from

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def verify(inst: Installation, run: str, *, status: int) -> dict[str, Any]:
    done = inst.cli("reproduce", run, "--verify", "--json", check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_a_plain_script_gives_the_same_files(inst: Installation, tmp_path: Path) -> None:
    folder = project_from("plain-script", tmp_path)
    run = inst.submit(folder)
    inst.wait(run)
    told = verify(inst, run, status=0)
    assert (told["verdict"], told["equal"], told["unequal"]) == ("equal", True, []) and told["outputs"] >= 1


def test_a_stage_graph_gives_the_same_products_also_with_stages_beside_each_other(
    inst: Installation, tmp_path: Path
) -> None:
    folder = project_from("stages", tmp_path)
    text = (folder / "trackbed.yaml").read_text()
    twin = "  - name: twin\n    run: python train.py\n    needs: [prep]\n    inputs: {points: prep.points}\n    produces: {line: line.json}\n"
    (folder / "trackbed.yaml").write_text(text + twin)
    first = inst.wait(inst.submit(folder))
    beside = [one["run_id"] for one in first["stages"] if one.get("run_id")]
    assert len(beside) == 1, "train and twin ran at the same time"
    told = verify(inst, first["run"]["id"], status=0)
    assert told["verdict"] == "equal" and told["products"] == 4 and told["unequal"] == []


def test_what_differs_is_told_by_name(inst: Installation, tmp_path: Path) -> None:
    folder = project_from("plain-script", tmp_path)
    (folder / "train.py").write_text(
        "import os, pathlib, time\npathlib.Path(os.environ['TRACKBED_OUTPUT'], 'clock.txt').write_text(str(time.time_ns()))\n"
    )
    run = inst.submit(folder, "determinism=recorded")
    inst.wait(run)
    told = verify(inst, run, status=1)
    assert told["verdict"] == "differs" and [one["name"] for one in told["unequal"]] == ["clock.txt"]
    assert told["nondeterminism"] and "differs_not_exact" in [one["code"] for one in told["why"]]


def test_it_is_the_same_on_another_server_with_another_store(inst: Installation, tmp_path: Path) -> None:
    folder = project_from("plain-script", tmp_path)
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "a.txt").write_text("one\ntwo\n")
    inst.cli("data", "add", "carried", str(corpus))
    (folder / "train.py").write_text(
        "import os, pathlib\ntext = pathlib.Path(os.environ['TRACKBED_DATA_CORPUS'], 'a.txt').read_text()\n"
        "pathlib.Path(os.environ['TRACKBED_OUTPUT'], 'out.txt').write_text(text * 2)\n"
    )
    run = inst.submit(folder, "data.corpus=carried@latest")
    first = inst.wait(run)
    with installation(tmp_path / "other", cards=2) as other:
        other.until(
            (other.home / "client" / "credentials.json").exists, what="the other server has signed its person in"
        )
        known = json.loads((inst.home / "client" / "credentials.json").read_text())
        there = json.loads((other.home / "client" / "credentials.json").read_text())
        known["servers"] |= there["servers"]
        (inst.home / "client" / "credentials.json").write_text(json.dumps(known))
        url = f"http://127.0.0.1:{other.port}"
        done = inst.cli("reproduce", run, "--on", url, "--verify", "--json", check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        told = json.loads(done.stdout)
        assert told["verdict"] == "equal" and told["outputs"] >= 1
        again = other.show(told["run_id"])
        assert again["spec"]["data"]["corpus"]["digest"] == first["spec"]["data"]["corpus"]["digest"]
        assert again["tree"]["digest"] == first["tree"]["digest"]
