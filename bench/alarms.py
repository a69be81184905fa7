"""False alarms on clean curves, and what is found in spoilt ones. `python bench/alarms.py [--curves 2000]`

Curves are power laws and exponentials that go on improving, with noise of several kinds; each is spoilt in one way at a
random step and judged as the server does it.
"""

import argparse
import json
import math
import platform
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

from trackbed.tracking.anomalies_rules import Curve, Judge, Rules

STEPS = 2000
Noise = Callable[[random.Random], float]
NOISES: dict[str, Noise] = {
    "normal, 0.05": lambda chance: chance.gauss(0, 0.05),
    "normal, 0.2": lambda chance: chance.gauss(0, 0.2),
    "lognormal, sigma 0.3": lambda chance: 0.05 * (math.exp(chance.gauss(0, 0.3)) - 1),
    "lognormal, sigma 0.6 (heavy tail)": lambda chance: 0.05 * (math.exp(chance.gauss(0, 0.6)) - 1),
    "Laplace, 0.05": lambda chance: 0.05 * chance.choice((-1, 1)) * chance.expovariate(1),
}


def clean(chance: random.Random, noise: Noise) -> list[float]:
    if chance.random() < 0.6:
        height, power, floor = chance.uniform(2, 9), chance.uniform(0.15, 0.5), chance.uniform(0, 3)
        return [floor + height * (t + 10) ** -power + noise(chance) for t in range(STEPS)]
    height, floor, tau = chance.uniform(1, 8), chance.uniform(0.1, 3), chance.uniform(600, 4000)
    return [floor + height * math.exp(-t / tau) + noise(chance) for t in range(STEPS)]


def opened(values: list[float]) -> dict[str, int]:
    """Return the first step of each kind that was found."""
    judge = Judge("loss", Curve(), Rules())
    judge.feed(1, range(len(values)), range(len(values)), values)
    found: dict[str, int] = {}
    for one in judge.news:
        if one.what == "opened":
            found.setdefault(one.kind, one.mark.first_step)
    return found


def spike(chance: random.Random, values: list[float]) -> int:
    at = chance.randrange(200, STEPS - 100)
    values[at] += 1.5
    return at


def diverge(chance: random.Random, values: list[float]) -> int:
    at, rate = chance.randrange(300, STEPS - 300), chance.uniform(0.01, 0.2)
    for t in range(at, STEPS):
        values[t] += (t - at) * rate
    return at


def flatten(chance: random.Random, values: list[float]) -> int:
    at = chance.randrange(200, 600)
    level = values[at]
    for t in range(at, STEPS):
        values[t] = level + chance.gauss(0, 0.02)
    return at


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--curves", type=int, default=2000)
    curves = asked.parse_args().curves
    rows: list[dict[str, object]] = []
    facts = {"hardware": platform.processor() or platform.machine(), "versions": {"python": platform.python_version()},
             "command": f"python bench/alarms.py --curves {curves}", "n": curves}  # fmt: skip
    begun_s = time.process_time()
    for name, noise in NOISES.items():
        alarms = sum(bool(opened(clean(random.Random(seed), noise))) for seed in range(curves))
        rows.append(
            {
                "what": f"clean curves of {STEPS} points with an alarm, noise {name}",
                "ours": alarms / curves,
                "unit": "share",
                **facts,
            }
        )
    for kind, spoil in (("spike", spike), ("divergence", diverge), ("plateau", flatten)):
        delays: list[int] = []
        for seed in range(curves):
            chance = random.Random(seed)
            values = clean(chance, NOISES["normal, 0.05"])
            at = spoil(chance, values)
            step = opened(values).get(kind)
            if step is not None and step >= at:
                delays.append(step - at)
        delays.sort()
        rows.append({"what": f"{kind} found", "ours": len(delays) / curves, "unit": "share", **facts})
        rows.append(
            {
                "what": f"{kind}, points until it is found, median and p95",
                "ours": [delays[len(delays) // 2], delays[len(delays) * 95 // 100]] if delays else [],
                "unit": "points",
                **facts,
            }
        )
    points = curves * STEPS * (len(NOISES) + 3)
    rows.append(
        {
            "what": "CPU a judged point",
            "ours": round((time.process_time() - begun_s) / points * 1e6, 2),
            "unit": "µs",
            **facts,
        }
    )
    place = Path(__file__).parent / "results" / "alarms.json"
    place.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for row in rows:
        sys.stdout.write(f"{row['what']}: {row['ours']} {row['unit']}\n")


if __name__ == "__main__":
    main()
