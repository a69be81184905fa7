"""Forty lines of ordinary PyTorch DDP. It knows torch's own environment names and nothing else."""

import json
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

torch.manual_seed(17)
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
params = json.loads(Path(os.environ["TRACKBED_PARAMS"]).read_text())
checkpoints = Path(os.environ["TRACKBED_CHECKPOINTS"])

model = DDP(torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)))
optimizer = torch.optim.AdamW(model.parameters(), lr=params["lr"])
step = 0
if (checkpoints / "latest").exists():
    saved = torch.load(checkpoints / "latest" / "state.pt", weights_only=True)
    model.module.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    step = saved["step"]
    print(f"rank {rank} resumed at step {step}", flush=True)

while step < params["steps"]:
    generator = torch.Generator().manual_seed(1000 * step + rank)
    x = torch.randn(16, 8, generator=generator)
    loss = (model(x) - x.sum(1, keepdim=True).sin()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    step += 1
    if rank == 0 and step % params["save_every"] == 0:
        part = checkpoints / f".step-{step}"
        part.mkdir(exist_ok=True)
        torch.save(
            {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, part / "state.pt"
        )
        part.rename(checkpoints / f"step-{step}")
        print(f"step {step} of {params['steps']} loss {loss.item():.5f} world {world}", flush=True)
if rank == 0:
    torch.save(model.module.state_dict(), Path(os.environ["TRACKBED_OUTPUT"]) / "model.pt")
dist.barrier()  # nobody leaves while another still talks to it
dist.destroy_process_group()
