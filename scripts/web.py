"""Build the board into `src/trackbed/server/static`, as the build hook does, whether or not anything changed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    shutil.rmtree(ROOT / "src" / "trackbed" / "server" / "static", ignore_errors=True)
    env = {name: value for name, value in os.environ.items() if name != "TRACKBED_WEB"}
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps", "-e", "."]
    return subprocess.run(command, cwd=ROOT, env=env).returncode


if __name__ == "__main__":
    raise SystemExit(main())
