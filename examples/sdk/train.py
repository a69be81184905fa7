"""A plain-Python trainer with the real SDK: logs, checkpoints, resumes, and stops at the same step on all ranks."""

import json
import os
import random
import time

import trackbed

with trackbed.init() as run:
    rank = int(os.environ.get("RANK", "0"))
    steps, pause_s = run.params.get("steps", 100), run.params.get("sleep_s", 0.02)
    run.define_metric("loss", goal="min", deterministic=True)
    weight, step = 0.0, 0
    latest = run.latest_checkpoint()
    if latest is not None:
        saved = json.loads((latest / f"rank-{rank}.json").read_text())
        weight, step = saved["weight"], saved["step"]
        print(f"resumed at step {step}", flush=True)

    def save() -> None:
        folder = run.checkpoints / f"step-{step}"
        folder.mkdir(exist_ok=True)
        (folder / f"rank-{rank}.json").write_text(json.dumps({"weight": weight, "step": step}))
        run.checkpoint(folder, step=step)

    while step < steps:
        noise = random.Random(run.seed * 1_000_003 + step).uniform(-0.1, 0.1)
        weight += 0.05 * (1.0 - weight + noise)
        step += 1
        run.log({"loss": (1.0 - weight) ** 2, "weight": weight}, step=step)
        if rank == 0:
            run.progress(step, steps)
        time.sleep(pause_s + (run.params.get("late_s", 0) if rank == 1 and step == 1 else 0))
        if run.should_stop(step=step):
            save()
            print(f"rank {rank} left at step {step}", flush=True)
            raise SystemExit(0)
        if step % run.params.get("save_every", 20) == 0:
            save()
    if rank == 0:
        (run.output / "weight.json").write_text(json.dumps({"weight": weight}))
