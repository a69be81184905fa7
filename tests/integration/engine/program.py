"""One rank of the multi-rank tests: does the scenarios of a list one after the other, writes what it saw, leaves.

    python program.py scenarios.json

A scenario: {"name", "out", "params", "latest", "weights", "corpus", "die": [rank, step], "stop_at"}. The first rank writes
`<name>.json` into `out`: losses and gradient norms as hexadecimal floats by step, the outcome, lines said.
"""

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from trackbed.base.errors import TrackbedError
from trackbed.engine.config import Circumstances, resolve
from trackbed.engine.parallel.ranks import Group, Ranks
from trackbed.engine.report import MetricDefinition
from trackbed.engine.train.pretrain import Folders, pretrain


class Host:
    def __init__(self, scenario: dict[str, Any], rank: int) -> None:
        self.scenario, self.rank = scenario, rank
        self.metrics: dict[int, dict[str, str]] = {}
        self.lines: list[str] = []

    def should_stop(self, step: int) -> bool:
        if self.scenario.get("die") == [self.rank, step]:
            os.kill(os.getpid(), 9)
        return step == self.scenario.get("stop_at")

    def define(self, definition: MetricDefinition) -> None:
        pass

    def log(self, metrics: dict[str, float], *, step: int) -> None:
        exact = {key: value.hex() for key, value in metrics.items() if key != "tokens_per_s"}
        self.metrics.setdefault(step, {}).update(exact)

    def phase(self, name: str) -> contextlib.AbstractContextManager[object]:
        return contextlib.nullcontext()

    def progress(self, step: int, steps_total: int, seconds_left: float | None) -> None:
        pass

    def say(self, line: str) -> None:
        self.lines.append(line)


def main() -> None:
    ranks = Ranks.from_environment(os.environ)
    group = Group(ranks, timeout_s=60)
    for scenario in json.loads(Path(sys.argv[1]).read_text()):
        out = Path(scenario["out"])
        host = Host(scenario, ranks.rank)
        config = resolve("pretrain", scenario["params"], Circumstances(seed=17, world_size=ranks.world_size))
        latest = scenario.get("latest")
        folders = Folders(
            corpus=Path(scenario["corpus"]),
            output=out / "output",
            checkpoints=out / "checkpoints",
            scratch=out,
            latest=Path(latest) if latest else None,
            weights=Path(scenario["weights"]) if "weights" in scenario else None,
        )
        try:
            outcome = pretrain(config, folders, host, group=group, threads=1).value
        except TrackbedError as error:
            outcome = error.code
        if ranks.first:
            seen = {"metrics": host.metrics, "outcome": outcome, "lines": host.lines}
            (out / f"{scenario['name']}.json").write_text(json.dumps(seen))
    group.close()
    sys.stdout.flush()
    os._exit(0)


main()
