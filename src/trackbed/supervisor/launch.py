"""Commands and environments of the ranks of one node. Pure: folders, ports and secrets come in as arguments.

A rank inherits no variable of the server but the harmless ones below: no person's token, no attempt token, no home of ours.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trackbed.clusters import NodeFolder
from trackbed.clusters.processes import MARK
from trackbed.wire.attempts import Assignment, NodeSlot

_KEPT = frozenset(
    {"HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "TMPDIR", "PATH", "LD_LIBRARY_PATH", "PYTHONPATH",
     "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "HF_HOME", "HF_ENDPOINT",
     "TORCH_HOME", "CUDA_HOME", "CUDA_PATH", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}
)  # fmt: skip
_KEPT_STARTS = ("LC_", "XDG_", "SSL_CERT_", "NCCL_", "GLOO_", "UCX_", "FI_")


@dataclass(frozen=True)
class RankPlan:
    rank: int
    argv: list[str]
    env: dict[str, str]


@dataclass(frozen=True)
class Ground:
    """What a launch stands on: the prepared folder and what was found out on the node."""

    folder: NodeFolder
    port: int
    relay_url: str = ""
    relay_secret: str = ""
    data: Mapping[str, Path] = field(default_factory=dict[str, Path])
    from_: Path | None = None
    visible: Mapping[str, str] = field(default_factory=dict[str, str])  # of the accelerator
    inherited: Mapping[str, str] = field(default_factory=dict[str, str])  # the supervisor's own environment


def plan(assignment: Assignment, ground: Ground) -> list[RankPlan]:
    """Return the processes that this node starts, by rank; none on a later node under launcher `none`."""
    shared = base_env(assignment, ground)
    launcher = launcher_of(assignment)
    argv = command(assignment)
    slots = assignment.nodes or [NodeSlot(node="local")]
    sizes = [max(1, len(slot.cards)) for slot in slots]
    master = {"MASTER_ADDR": slots[0].address, "MASTER_PORT": str(ground.port)}
    if launcher == "none":
        env = _own(shared | mlflow_env(assignment, ground, 0), {}, assignment)
        return [RankPlan(0, argv, env)] if assignment.node_rank == 0 else []
    if launcher == "process_per_node":
        names = {
            "NODE_RANK": str(assignment.node_rank), "NNODES": str(len(slots)), **master,
            "PET_NNODES": str(len(slots)), "PET_NODE_RANK": str(assignment.node_rank),
            "PET_NPROC_PER_NODE": str(sizes[assignment.node_rank]),
            "PET_MASTER_ADDR": slots[0].address, "PET_MASTER_PORT": str(ground.port),
        }  # fmt: skip
        env = _own(shared | mlflow_env(assignment, ground, assignment.node_rank), names, assignment)
        return [RankPlan(assignment.node_rank, argv, env)]
    first, here = sum(sizes[: assignment.node_rank]), sizes[assignment.node_rank]
    plans: list[RankPlan] = []
    for local in range(here):
        names = {
            "RANK": str(first + local), "LOCAL_RANK": str(local), "WORLD_SIZE": str(sum(sizes)),
            "LOCAL_WORLD_SIZE": str(here), "NODE_RANK": str(assignment.node_rank), **master,
        }  # fmt: skip
        env = _own(shared | mlflow_env(assignment, ground, first + local), names, assignment)
        plans.append(RankPlan(first + local, argv, env))
    return plans


def command(assignment: Assignment) -> list[str]:
    """Return the program: the user's line by `sh -c`, or our worker for a recipe or suite."""
    if assignment.command:
        return ["/bin/sh", "-c", assignment.command]
    python = str(assignment.environment.get("executable") or "python")
    return [python, "-m", "trackbed.worker"]


def base_env(assignment: Assignment, ground: Ground) -> dict[str, str]:
    """Return what every rank of the node finds (ARCHITECTURE section 4), before its own names and the spec's `env`."""
    folder = ground.folder
    env = _inherited(assignment, ground.inherited)
    env |= ground.visible
    env |= {
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": str(max(1, assignment.cpus_per_card)),
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",  # a store of the ranks' own: it ends with them
        "TRACKBED_RUN": assignment.run_id,
        "TRACKBED_ATTEMPT": str(assignment.number),
        "TRACKBED_INCARNATION": "0",
        "TRACKBED_PARAMS": str(folder.control / "params.json"),
        "TRACKBED_OUTPUT": str(folder.output),
        "TRACKBED_CHECKPOINTS": str(folder.checkpoints),
        "TRACKBED_SCRATCH": str(folder.scratch),
        MARK: str(folder.control),
        "TRACKBED_NODES": ",".join(slot.address for slot in assignment.nodes) or "127.0.0.1",
    }
    stage, every = assignment.stage, assignment.checkpoint
    env |= {
        "TRACKBED_RUN_REF": assignment.run_ref,
        "TRACKBED_PROJECT": assignment.project,
        "TRACKBED_SEED": str(assignment.seed),
        "TRACKBED_DETERMINISM": assignment.determinism,
    }
    maybe = {
        "TRACKBED_RECIPE": assignment.recipe or (stage.recipe if stage is not None else ""),
        "TRACKBED_STAGE": stage.name if stage is not None else "",
        "TRACKBED_SUITE": stage.suite if stage is not None else "",
        "TRACKBED_CHECKPOINT_STEPS": str(every.every_steps or ""),
        "TRACKBED_CHECKPOINT_SECONDS": str(every.every_s or ""),
        "TRACKBED_CHECKPOINT_EPOCH": "1" if every.every_epoch else "",
        "TRACKBED_TRIAL": "1" if assignment.trial_steps else "",
        "TRACKBED_TRIAL_STEPS": str(assignment.trial_steps or ""),
    }
    env |= {name: value for name, value in maybe.items() if value}
    env |= {f"TRACKBED_DATA_{env_name(name)}": str(path) for name, path in ground.data.items()}
    if ground.from_ is not None:
        env["TRACKBED_FROM"] = str(ground.from_)
    if ground.relay_url:
        env |= {"TRACKBED_URL": ground.relay_url, "TRACKBED_TOKEN": ground.relay_secret}
    return env


def variables_of(assignment: Assignment, inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of the ranks that come from the node and the spec, for the record of what they found."""
    own = {"OMP_NUM_THREADS": str(max(1, assignment.cpus_per_card))}
    return _inherited(assignment, inherited) | own | assignment.env


def _inherited(assignment: Assignment, inherited: Mapping[str, str]) -> dict[str, str]:
    env = {k: v for k, v in inherited.items() if k in _KEPT or k.startswith(_KEPT_STARTS)}
    executable = str(assignment.environment.get("executable") or "")
    if executable:
        folder_bin = str(Path(executable).parent)
        env["PATH"] = os.pathsep.join([folder_bin, env.get("PATH", "/usr/local/bin:/usr/bin:/bin")])
    if assignment.pack:  # what is frozen takes in nothing of the node
        env.pop("PYTHONPATH", None)
    if assignment.pack and executable:
        env["VIRTUAL_ENV"] = str(Path(executable).parent.parent)
    return env


def mlflow_env(assignment: Assignment, ground: Ground, rank: int) -> dict[str, str]:
    """Return what makes an unmodified MLflow client log to the job's run; nothing where the spec names another server.

    The rank stands behind the secret: of each rank the first run that it makes is the job's own.
    """
    if not ground.relay_url or "MLFLOW_TRACKING_URI" in assignment.env:
        return {}
    return {
        "MLFLOW_TRACKING_URI": ground.relay_url,
        "MLFLOW_TRACKING_TOKEN": f"{ground.relay_secret}.{rank}",
        "MLFLOW_RUN_ID": assignment.run_id,
        "MLFLOW_EXPERIMENT_ID": assignment.project_id,
    }


def env_name(name: str) -> str:
    """`my-corpus` → `MY_CORPUS`."""
    return re.sub(r"[^A-Za-z0-9]", "_", name).upper()


def askers(assignment: Assignment, live: set[int]) -> set[int]:
    """Return the numbers under which the ranks of running processes ask: the processes' own, or those of a node's cards."""
    if launcher_of(assignment) != "process_per_node" or not live:
        return live
    sizes = [max(1, len(slot.cards)) for slot in assignment.nodes] or [1]
    first = sum(sizes[: assignment.node_rank])
    return set(range(first, first + sizes[assignment.node_rank]))


def launcher_of(assignment: Assignment) -> str:
    if assignment.stage is not None and assignment.stage.launcher is not None:
        return assignment.stage.launcher
    return assignment.launcher


def _own(shared: dict[str, str], names: dict[str, str], assignment: Assignment) -> dict[str, str]:
    """The spec's `env` wins over everything but what identifies the job and its ranks."""
    fixed = {k: v for k, v in shared.items() if k.startswith("TRACKBED_")} | names
    return shared | assignment.env | fixed
