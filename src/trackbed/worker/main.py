"""The program of a rank, from its variables to its exit status.

Exit status: 0 trained to the end, or stopped when asked with a checkpoint saved; 2 and the like by the class of the error;
75 another rank was lost (that rank's end is the cause, not ours).
"""

import os
import sys
import traceback
from pathlib import Path
from typing import NoReturn

from trackbed.base.errors import BadInput, TrackbedError
from trackbed.client.run import Run, init
from trackbed.engine.callbacks import Host
from trackbed.engine.config import Circumstances, RunConfig, resolve
from trackbed.engine.parallel.ranks import Group, Ranks, is_lost_peer
from trackbed.engine.train.pretrain import Folders, pretrain
from trackbed.worker.circumstances import Surroundings, look_around
from trackbed.worker.hosts import AloneHost, JobHost

LOST_PEER = 75  # EX_TEMPFAIL: the same program may well succeed at the next try
COLLECTIVE_TIMEOUT_S = 120.0


def main(arguments: list[str], env: dict[str, str]) -> NoReturn:
    """Train one rank and end the process."""
    run: Run | None = None
    try:
        ranks = Ranks.from_environment(env)
        around = look_around(arguments, env)
        config = _configure(around, ranks)
        folders = _folders(around, env)
        run = init() if around.in_job else None
        host: Host = AloneHost(around.output, first=ranks.first) if run is None else JobHost(run)
        _train(config, folders, host, ranks, around, timeout_s=_timeout_s(env))
        code = 0
    except TrackbedError as error:
        code = error.exit_status
        sys.stderr.write(f"{error.text()}\n")
    except Exception as error:
        code = LOST_PEER if is_lost_peer(error) else 1
        traceback.print_exc()
    _leave(code, run)


def _configure(around: Surroundings, ranks: Ranks) -> RunConfig:
    return resolve(
        around.recipe,
        around.params,
        Circumstances(
            seed=around.seed,
            world_size=ranks.world_size,
            determinism=around.determinism,
            rhythm=around.rhythm,
        ),
    )


def _folders(around: Surroundings, env: dict[str, str]) -> Folders:
    corpus = env.get("TRACKBED_DATA_CORPUS", "")
    if not corpus:
        raise BadInput("worker_no_corpus", recipe=around.recipe)
    return Folders(
        corpus=Path(corpus),
        output=around.output,
        checkpoints=around.checkpoints,
        scratch=around.scratch,
        latest=around.latest,
        weights=around.weights,
    )


def _train(
    config: RunConfig, folders: Folders, host: Host, ranks: Ranks, around: Surroundings, *, timeout_s: float
) -> None:
    folders.scratch.mkdir(parents=True, exist_ok=True)
    group = Group(ranks, timeout_s=timeout_s)
    pretrain(config, folders, host, group=group, threads=around.threads)
    group.close()


def _timeout_s(env: dict[str, str]) -> float:
    """How long a collective waits for a rank that says nothing; a rank that died is noticed at once."""
    try:
        return float(env.get("TRACKBED_COLLECTIVE_TIMEOUT_S", "") or COLLECTIVE_TIMEOUT_S)
    except ValueError:
        return COLLECTIVE_TIMEOUT_S


def _leave(code: int, run: Run | None) -> NoReturn:
    """End without the interpreter's own ending.

    Threads of the process group that are still running then abort about every third process (torch 2.13, gloo: "terminate
    called without an active exception", status 134) after everything was done; and after an error, destructors would wait
    for ranks that are gone.
    """
    if run is not None:
        run.finish("failed" if code else "finished", exit_code=code)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
