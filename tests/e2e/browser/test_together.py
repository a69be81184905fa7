"""Documents, repeats, health, store and reviews on the board."""

from __future__ import annotations

import re
import subprocess
from typing import Any

import pytest

expect = pytest.importorskip("playwright.sync_api", reason="BROWSER TESTS SKIPPED: pip install playwright").expect

pytestmark = [pytest.mark.browser, pytest.mark.e2e]

README = """
# What it learns

It learns **bytes**; see [the notes](docs/notes.md) and [never this](javascript:window.hit=1).

<img src=x onerror="window.hit=1"><script>window.hit=1</script>

![a picture](https://example.org/tracker.png)
"""


def test_documents_of_a_run_are_drawn_and_run_nothing(board: Any) -> None:
    folder = board.work / "papers"
    (folder / "docs").mkdir(parents=True)
    (folder / "README.md").write_text(README)
    (folder / "docs" / "notes.md").write_text("# Notes\n\nBack to [the start](../README.md).\n")
    (folder / "a.py").write_text("print(1)\n")
    (folder / "trackbed.yaml").write_text("project: demo\nname: papers\nresources: {cards: 1}\nrun: python a.py\n")
    run = board.inst.submit(folder)
    page = board.page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    board.open(page, f"/runs/{run}/docs")
    page.get_by_role("heading", name="What it learns").wait_for()
    assert page.locator("strong", has_text="bytes").count() == 1
    expect(page.get_by_text("<script>window.hit=1</script>")).to_be_visible()
    assert page.get_by_role("link", name="never this").count() == 0
    assert page.evaluate("window.hit") is None
    assert not [url for url in asked if "example.org" in url]
    page.get_by_role("button", name="the notes").click()
    page.wait_for_url(re.compile(r"file=docs%2Fnotes\.md"))
    page.get_by_role("button", name="the start").click()
    page.get_by_role("heading", name="What it learns").wait_for()
    page.context.close()


def test_a_review_is_read_by_its_lines_and_approved_by_somebody_else(board: Any) -> None:
    folder = board.work / "guarded"
    folder.mkdir()
    for words in (["init", "-q"], ["config", "user.email", "a@b.c"], ["config", "user.name", "a"]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    (folder / "rates.yaml").write_text("lr: 0.1\nsteps: 10\n")
    subprocess.run(["git", "add", "."], cwd=folder, check=True)
    subprocess.run(["git", "commit", "-qm", "one"], cwd=folder, check=True)
    board.inst.cli("review", "protect", "rates.yaml")
    board.inst.cli("review", "request", "rates.yaml", cwd=folder)
    own = board.open(board.page(), "/reviews")
    own.get_by_role("table", name="Reviews").get_by_role("button", name="rates.yaml").click()
    dialog = own.get_by_role("dialog")
    dialog.get_by_text("+steps: 10").wait_for()
    assert dialog.get_by_role("button", name="Approve").count() == 0  # never by its author
    own.context.close()
    other = board.page(storage_state=None)
    link = re.search(r"http\S+#code=\S+", board.inst.cli("people", "add", "cid").stdout)
    assert link is not None
    board.inst.cli("space", "member", "default", "cid", "member")
    other.goto(link[0])
    other.wait_for_selector("[data-ready]")
    board.open(other, "/reviews")
    other.get_by_role("table", name="Reviews").get_by_role("button", name="rates.yaml").click()
    other.get_by_role("dialog").get_by_role("button", name="Approve").click()
    other.get_by_role("dialog").get_by_text("approved", exact=True).wait_for()
    other.context.close()


def test_health_and_store_tell_what_was_measured(board: Any) -> None:
    page = board.open(board.page(), "/pool")
    page.get_by_role("button", name="Look now").click()
    row = page.get_by_role("table", name="Health of the nodes").get_by_role("row").filter(has_text="fsync")
    expect(row).to_contain_text("A durable write takes")
    row.get_by_role("button", name="History").click()
    page.get_by_role("dialog").get_by_role("row").nth(1).wait_for()
    board.open(page, "/settings")
    page.get_by_role("button", name="Change", exact=True).click()
    page.get_by_label("Low when full in less than (hours)").fill("7")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    page.get_by_role("dialog").wait_for(state="detached")
    settings = board.inst.json("store", "status")["settings"]
    assert settings["low_water_h"] == 7
    assert "gc_every_s" not in settings or settings["gc_every_s"] == 86400  # what was not touched stays
    page.context.close()
