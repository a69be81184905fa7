"""What a job finds, launcher by launcher."""

from pathlib import Path
from typing import Any

from trackbed.clusters import NodeFolder
from trackbed.supervisor.launch import Ground, askers, env_name, plan
from trackbed.wire.attempts import Assignment, NodeSlot
from trackbed.wire.spec import CheckpointPolicy, Stage

FOLDER = NodeFolder(Path("/n/attempts/att_1"))


def given(**fields: Any) -> Assignment:
    base: dict[str, Any] = {
        "attempt_id": "att_1", "number": 2, "epoch": 2, "run_id": "run_1", "run_ref": "demo#1", "project": "demo",
        "command": "python train.py", "environment": {"executable": "/venv/bin/python"}, "seed": 17,
        "nodes": [NodeSlot(node="a", address="10.0.0.1", cards=[2, 3]), NodeSlot(node="b", address="10.0.0.2", cards=[0, 1])],
    }  # fmt: skip
    return Assignment(**(base | fields))


def ground(**fields: Any) -> Ground:
    return Ground(folder=FOLDER, port=29500, **fields)


def test_rank_per_card_numbers_ranks_across_nodes() -> None:
    plans = plan(given(node_rank=1), ground())
    assert [p.rank for p in plans] == [2, 3]
    env = plans[1].env
    assert (env["RANK"], env["LOCAL_RANK"], env["WORLD_SIZE"], env["LOCAL_WORLD_SIZE"]) == ("3", "1", "4", "2")
    assert (env["NODE_RANK"], env["MASTER_ADDR"], env["MASTER_PORT"]) == ("1", "10.0.0.1", "29500")
    assert env["TRACKBED_NODES"] == "10.0.0.1,10.0.0.2"


def test_a_job_without_cards_is_one_plain_process() -> None:
    plans = plan(given(nodes=[NodeSlot(node="a")]), ground())
    assert len(plans) == 1 and plans[0].env["WORLD_SIZE"] == "1"


def test_process_per_node_has_torchruns_names_and_no_rank() -> None:
    (one,) = plan(given(launcher="process_per_node", node_rank=1), ground())
    assert one.env["PET_NNODES"] == "2" and one.env["PET_NODE_RANK"] == "1" and one.env["PET_NPROC_PER_NODE"] == "2"
    assert one.env["PET_MASTER_ADDR"] == "10.0.0.1" and one.env["PET_MASTER_PORT"] == "29500"
    assert "RANK" not in one.env and "WORLD_SIZE" not in one.env


def test_none_starts_one_process_on_the_first_node_only() -> None:
    assert len(plan(given(launcher="none"), ground())) == 1
    assert plan(given(launcher="none", node_rank=1), ground()) == []


def test_a_stage_may_name_another_launcher() -> None:
    stage = Stage(name="eval", run="x", launcher="none")
    assert len(plan(given(stage=stage), ground())) == 1


def test_the_spec_wins_over_defaults_but_not_over_what_identifies_the_job() -> None:
    env = {"OMP_NUM_THREADS": "9", "PYTHONUNBUFFERED": "0", "RANK": "5", "TRACKBED_RUN": "run_other", "MINE": "x"}
    found = plan(given(env=env, cpus_per_card=4), ground())[0].env
    assert found["OMP_NUM_THREADS"] == "9" and found["MINE"] == "x"
    assert found["RANK"] == "0" and found["TRACKBED_RUN"] == "run_1"
    assert plan(given(cpus_per_card=4), ground())[0].env["OMP_NUM_THREADS"] == "4"


def test_nothing_of_the_server_is_inherited_but_what_is_harmless() -> None:
    inherited = {"HOME": "/root", "LC_ALL": "C", "TRACKBED_HOME": "/h", "TRACKBED_TOKEN": "tbp_x", "AWS_SECRET_ACCESS_KEY": "s",
                 "OMP_NUM_THREADS": "64", "PATH": "/usr/bin", "HF_TOKEN": "hf"}  # fmt: skip
    found = plan(given(), ground(inherited=inherited))[0].env
    assert found["HOME"] == "/root" and found["LC_ALL"] == "C"
    assert found["PATH"] == "/venv/bin:/usr/bin" and found["OMP_NUM_THREADS"] == "1"
    assert not {"TRACKBED_HOME", "TRACKBED_TOKEN", "AWS_SECRET_ACCESS_KEY", "HF_TOKEN"} & found.keys()


def test_inputs_have_names_in_capitals() -> None:
    assert env_name("my-corpus.v2") == "MY_CORPUS_V2"
    found = plan(given(), ground(data={"my-corpus": Path("/d")}, from_=Path("/f")))[0].env
    assert found["TRACKBED_DATA_MY_CORPUS"] == "/d" and found["TRACKBED_FROM"] == "/f"


def test_a_recipe_is_run_by_our_worker_and_rhythm_and_seed_are_told() -> None:
    plans = plan(given(command="", recipe="pretrain", checkpoint=CheckpointPolicy(every_steps=50)), ground())
    assert plans[0].argv == ["/venv/bin/python", "-m", "trackbed.worker"]
    assert plans[0].env["TRACKBED_RECIPE"] == "pretrain" and plans[0].env["TRACKBED_SEED"] == "17"
    assert plans[0].env["TRACKBED_CHECKPOINT_STEPS"] == "50" and "TRACKBED_CHECKPOINT_SECONDS" not in plans[0].env


def test_ranks_that_a_process_starts_itself_ask_under_their_own_numbers() -> None:
    assert askers(given(), {0, 1}) == {0, 1}
    assert askers(given(launcher="process_per_node", node_rank=1), {1}) == {2, 3}
    assert askers(given(launcher="process_per_node"), set()) == set()
