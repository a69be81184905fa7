"""What a process finds around it besides its packages: system, driver, devices, variables that change what it computes."""

import os
import platform
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from trackbed.wire.surroundings import Surroundings

_TELLING = re.compile(
    r"(CUDA|CUBLAS|CUDNN|NCCL|NVIDIA|TORCH|PYTORCH|TF|XLA|HIP|ROCR|GLOO|UCX|FI|OMP|MKL|OPENBLAS|NUMEXPR|KMP|GOMP|PYTHON|HF|"
    r"TRANSFORMERS|TOKENIZERS|DATASETS|WANDB|MLFLOW|LD|LC)_.*|PATH|PYTHONPATH|LANG|TZ|MALLOC_.*"
)
_OF_ONE_PROCESS = re.compile(
    r"PYTHONUNBUFFERED|CUDA_VISIBLE_DEVICES|NVIDIA_VISIBLE_DEVICES|MLFLOW_RUN_ID|MLFLOW_TRACKING_URI"
)
_SECRET = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|AUTH|(^|_)KEY($|_)|API_?KEY|COOKIE", re.IGNORECASE)
_URL_PASSWORD = re.compile(r"(?<=://)[^/\s@]+@")
MASKED = "••••"


def around(devices: Sequence[str] = (), variables: Mapping[str, str] | None = None) -> Surroundings:
    """Return the surroundings of this process; `devices` are the kinds of its cards, one each."""
    return Surroundings(
        os=_system(), kernel=platform.release(), libc=" ".join(platform.libc_ver()).strip(), driver=_driver(),
        cuda=_cuda(), devices=list(devices), variables=telling(os.environ if variables is None else variables),
    )  # fmt: skip


def telling(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that may change a result, by name; a value that may be a secret is masked."""
    return {
        name: MASKED if _SECRET.search(name) else _URL_PASSWORD.sub("", value)
        for name, value in sorted(variables.items())
        if _TELLING.fullmatch(name) and not _OF_ONE_PROCESS.fullmatch(name)
    }


def _system() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "") or platform.system()
    except OSError:
        return f"{platform.system()} {platform.mac_ver()[0]}".strip()


def _driver() -> str:
    """Version of the NVIDIA kernel module; empty where none is loaded."""
    found = re.search(r"Kernel Module.*?\s(\d+(?:\.\d+)+)", _read("/proc/driver/nvidia/version"))
    return found[1] if found else ""


def _cuda() -> str:
    """Version of the toolkit of this machine, if there is one; that of torch is among the packages."""
    found = re.search(r'"version"\s*:\s*"([\d.]+)"', _read("/usr/local/cuda/version.json"))
    return found[1] if found else ""


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
