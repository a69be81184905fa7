"""A real browser on a real server. `TRACKBED_CHROMIUM` names another browser, `TRACKBED_SHOTS` keeps the pictures."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

REPO = Path(__file__).resolve().parents[3]
STATIC = REPO / "src" / "trackbed" / "server" / "static" / "index.html"
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
]  # fmt: skip

SDK = """
import math, random, trackbed
with trackbed.init(project="demo", name="<b>html</b> 损失", tags=["baseline"], params={"lr": 3e-4, "long": "y" * 5000}) as run:
    run.define_metric("eval/loss", goal="min", unit="nats/byte")
    for step in range(3000):
        row = {"train/loss": 2 + 3.5 * math.exp(-step / 400) + random.random() * 0.2, "损失": math.exp(-step / 900)}
        row["val/AR@100"] = step / 3000
        row["train/grad"] = float("inf") if step == 1600 else float("nan") if step == 1700 else random.random()
        if step % 100 == 0:
            row["eval/loss"] = 2.1 + 3 * math.exp(-step / 400)
        run.log(row, step=step)
"""
TALK = """
import sys, time
for i in range(3000):
    print(f"line {i} 数据 <i>not html</i>")
print("x" * 20000)
print("ValueError: shapes do not match", file=sys.stderr)
for i in range(200):
    print(f"after {i}")
sys.exit(3)
"""


def chromium() -> str:
    names = ("chromium", "chromium-browser", "google-chrome")
    found = os.environ.get("TRACKBED_CHROMIUM") or next((path for name in names if (path := shutil.which(name))), "")
    if not found:
        pytest.skip(
            "BROWSER TESTS SKIPPED: no Chromium here (apt install chromium fonts-noto-cjk, or TRACKBED_CHROMIUM)"
        )
    if not STATIC.is_file():
        pytest.skip("BROWSER TESTS SKIPPED: the page is not built (make web)")
    return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    path = chromium()
    api = pytest.importorskip("playwright.sync_api", reason="BROWSER TESTS SKIPPED: pip install playwright")
    with api.sync_playwright() as play:
        started = play.chromium.launch(executable_path=path, headless=True, args=FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def board(inst: Any, browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Board:
    """The server with runs worth looking at: one from outside, one that failed, one with odd things in its log."""
    made = Board(inst, browser, tmp_path_factory.mktemp("work"))
    made.fill()
    return made


class Board:
    def __init__(self, inst: Any, browser: Any, work: Path) -> None:
        self.inst, self.browser, self.work = inst, browser, work
        self.url = f"http://127.0.0.1:{inst.port}"
        self.state = str(work / "state.json")
        self.faults: list[str] = []

    def fill(self) -> None:
        (self.work / "sdk.py").write_text(SDK)
        env = self.inst.env | {"TRACKBED_URL": self.url}
        subprocess.run([sys.executable, "sdk.py"], cwd=self.work, env=env, check=True, timeout=60)
        self.failed = self.submit("talk", TALK)
        self.inst.wait(self.failed, "failed")
        self.outside = next(run["id"] for run in self.inst.json("runs") if "html" in run["name"])
        data = self.work / "data"
        data.mkdir()
        (data / "a.txt").write_text("hello\n")
        self.inst.cli("data", "add", "words", str(data))
        page = self.browser.new_context().new_page()
        page.goto(self.login_link())
        page.wait_for_selector("[data-ready]")
        page.context.storage_state(path=self.state)
        page.context.close()

    def submit(self, name: str, program: str) -> str:
        folder = self.work / name
        folder.mkdir()
        (folder / f"{name}.py").write_text(program)
        spec = f"project: demo\nname: {name}\nresources: {{cards: 1}}\nparams: {{lr: 0.1}}\nrun: python {name}.py\n"
        (folder / "trackbed.yaml").write_text(spec)
        return str(self.inst.submit(folder))

    def login_link(self) -> str:
        answer = self.inst.cli("people", "link", self.inst.json("whoami")["name"]).stdout
        return str(re.search(r"http\S+#code=\S+", answer)[0])  # type: ignore[index]

    def page(self, scheme: str = "light", locale: str = "en-GB", **more: Any) -> Any:
        """A signed-in page that remembers what went wrong in it."""
        context = self.browser.new_context(
            color_scheme=scheme, locale=locale, reduced_motion="reduce", timezone_id="Europe/Berlin",
            **({"storage_state": self.state, "viewport": {"width": 1440, "height": 900}} | more),
        )  # fmt: skip
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda error: self.faults.append(f"{page.url}: {error}"))
        page.on(
            "console", lambda said: self.faults.append(f"{page.url}: {said.text}") if said.type == "error" else None
        )
        return page

    def open(self, page: Any, path: str) -> Any:
        page.goto(self.url + path)
        page.wait_for_selector("[data-ready]")
        return page

    def pages(self) -> dict[str, str]:
        run, failed = f"/runs/{self.outside}", f"/runs/{self.failed}"
        tabs = ("params", "code", "docs", "environment", "checkpoints", "artifacts", "lineage")
        return {
            "runs": "/runs", "groups": "/runs?group=state&cols=state,name,metrics.train%2Floss",
            "compare": f"/compare?runs={self.outside},{self.failed}",
            "compare-params": f"/compare?tab=params&runs={self.outside},{self.failed}",
            "diff": f"/diff/{self.failed}/{self.outside}", "new": "/new", "summary": run, "metrics": f"{run}/metrics", "metrics-table": f"{run}/metrics?table=1",
            "failed": failed, "logs": f"{failed}/logs", **{tab: f"{failed}/{tab}" for tab in tabs}, "pool": "/pool",
            "datasets": "/datasets", "dataset": "/datasets/words", "models": "/models", "reviews": "/reviews", "repeats": f"/compare?tab=repeats&runs={self.outside},{self.failed}",
            "settings": "/settings",
        }  # fmt: skip
