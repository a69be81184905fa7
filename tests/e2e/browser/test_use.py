"""What people do on the board: sign in, find a run, read its curves and logs, stop it."""

from __future__ import annotations

import re
from typing import Any

import pytest

expect = pytest.importorskip("playwright.sync_api", reason="BROWSER TESTS SKIPPED: pip install playwright").expect

pytestmark = [pytest.mark.browser, pytest.mark.e2e]


def test_a_login_link_opens_the_board_once_and_leaves_no_trace_in_the_address(board: Any) -> None:
    link = board.login_link()
    first = board.page(storage_state=None)
    first.goto(link)
    first.wait_for_selector("[data-ready]")
    assert first.url.endswith("/runs")
    first.context.close()
    second = board.page(storage_state=None)
    second.goto(link)
    second.get_by_role("alert").wait_for()
    assert "code" not in second.url
    second.context.close()


def test_a_page_behind_the_login_is_shown_after_it(board: Any) -> None:
    page = board.page(storage_state=None)
    page.goto(f"{board.url}/pool")
    page.wait_for_url(re.compile("/login"))
    link = board.login_link()
    page.get_by_label("Token", exact=True).fill(link.split("#code=")[1])
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(re.compile("/pool$"))
    page.context.close()


def test_a_wrong_filter_is_explained_and_a_right_one_stays_in_the_address(board: Any) -> None:
    page = board.open(board.page(), "/runs")
    box = page.get_by_label("Filter runs")
    box.fill("state ! 'failed'")
    page.get_by_role("alert").wait_for()
    assert page.locator("[data-run]").count() > 0  # old rows stay
    box.fill("state = 'failed'")
    page.wait_for_url(re.compile("q=state"))
    expect(page.locator("[data-run]")).to_have_count(1)
    page.reload()
    page.wait_for_selector(f"[data-run='{board.failed}']")
    assert page.locator("[data-run]").count() == 1
    page.context.close()


def test_html_in_names_is_text(board: Any) -> None:
    page = board.open(board.page(), "/runs")
    assert page.get_by_text("<b>html</b>").count() > 0
    assert page.locator("main b", has_text="html").count() == 0
    page.context.close()


def test_the_keyboard_is_enough_to_open_a_run(board: Any) -> None:
    page = board.open(board.page(), "/runs")
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.get_by_text("1 run chosen").wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/runs/run_"))
    page.keyboard.press("g")
    page.keyboard.press("r")
    page.wait_for_url(re.compile("/runs$"))
    page.keyboard.press("Control+k")
    page.get_by_placeholder("Search runs").fill("talk")
    page.get_by_role("dialog").get_by_text("talk", exact=True).click()
    page.wait_for_url(re.compile(board.failed))
    page.context.close()


def test_columns_of_metrics_are_chosen_by_name_and_sorted(board: Any) -> None:
    page = board.open(board.page(), "/runs?cols=state,name,metrics.%E6%8D%9F%E5%A4%B1,params.lr")
    page.get_by_role("columnheader", name="损失").get_by_role("button").click()
    page.wait_for_url(re.compile("sort=metrics"))
    expect(page.locator("[data-run]").first).to_contain_text("0.0357")
    page.context.close()


def test_curves_show_what_is_not_finite_and_keep_their_zoom(board: Any) -> None:
    page = board.open(board.page(), f"/runs/{board.outside}/metrics")
    card = page.locator("[data-chart='train/grad'][data-drawn]")
    card.scroll_into_view_if_needed()
    card.get_by_text("2 not finite").wait_for()
    label = page.locator("[data-chart='train/loss'] [role=img]").get_attribute("aria-label")
    assert label is not None
    assert label.startswith("train/loss")
    plot = page.locator("[data-chart='train/loss'] .u-over")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 60, steps=5)
    page.mouse.up()
    page.wait_for_url(re.compile(r"from=\d+.*to=\d+"))
    page.reload()
    page.get_by_role("button", name=re.compile("reset")).click()
    page.wait_for_url(re.compile(r"/metrics$"))
    page.context.close()


def test_the_charts_can_be_read_as_a_table(board: Any) -> None:
    page = board.open(board.page(), f"/runs/{board.outside}/metrics?table=1")
    row = page.get_by_role("row").filter(has_text="val/AR@100")
    assert "3,000" in row.inner_text()
    page.context.close()


def test_the_log_is_searched_and_leads_to_the_first_error(board: Any) -> None:
    page = board.open(board.page(), f"/runs/{board.failed}/logs")
    page.get_by_text("after 199").wait_for()  # opens at the end
    assert page.get_by_text("<i>not html</i>").count() >= 0
    page.get_by_role("button", name="First error").click()
    page.get_by_text("ValueError: shapes do not match").wait_for()
    page.get_by_label("Find in the log").fill("line 1234 ")
    page.locator("mark", has_text="line 1234").wait_for()
    page.get_by_label("Find in the log").fill("no such text anywhere")
    page.get_by_text("No line matches").wait_for()
    page.context.close()


def test_earlier_lines_are_one_page_and_what_was_on_top_stays_in_sight(board: Any) -> None:
    page = board.page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/logs?" in request.url else None)
    board.open(page, f"/runs/{board.failed}/logs")
    page.get_by_text("after 199").wait_for()
    log = page.get_by_role("log")
    log.evaluate("box => box.scrollTo(0, 0)")
    top = page.get_by_text(re.compile(r"^line 1[23]\d\d ")).first
    shown = top.inner_text()
    page.get_by_role("button", name="Load earlier").click()
    page.get_by_role("button", name="Load earlier").wait_for(state="detached")
    assert sum("before=" in url for url in asked) == 1 and sum("tail=" in url for url in asked) == 1, asked
    expect(page.get_by_text(shown)).to_be_in_viewport()
    log.evaluate("box => box.scrollTo(0, 0)")
    page.get_by_text("line 0 ").first.wait_for()
    page.context.close()


@pytest.mark.parametrize("locale", ["en-GB", "zh-CN"])
def test_every_page_fits_a_phone(board: Any, locale: str) -> None:
    page = board.page(locale=locale, viewport={"width": 390, "height": 844})
    wide: dict[str, int] = {}
    for name, path in board.pages().items():
        board.open(page, path)
        page.wait_for_timeout(200)
        width = page.evaluate("() => document.documentElement.scrollWidth")
        if width > 390:
            wide[name] = width
    page.context.close()
    assert wide == {}


def test_a_run_is_stopped_from_its_page_and_the_page_follows_without_reload(board: Any) -> None:
    run = board.submit("sleep", SLEEP)
    page = board.open(board.page(), f"/runs/{run}")
    page.locator("header [data-state=running]").first.wait_for(timeout=40_000)
    page.get_by_role("button", name="Stop", exact=True).click()
    dialog = page.get_by_role("dialog")
    assert "trackbed stop" in dialog.inner_text()
    dialog.get_by_role("button", name="Stop", exact=True).click()
    page.locator("header [data-state=stopped]").first.wait_for(timeout=40_000)
    page.context.close()


def test_eight_tabs_share_one_stream_and_none_hangs(board: Any) -> None:
    context = board.page().context
    pages = [context.pages[0], *[context.new_page() for _ in range(7)]]
    for page in pages:
        board.open(page, "/runs")
    pages[-1].get_by_text("Live", exact=True).wait_for()
    board.open(pages[-1], f"/runs/{board.outside}/metrics").wait_for_selector("[data-drawn]")
    context.close()


def test_a_language_chosen_on_the_page_is_kept(board: Any) -> None:
    page = board.open(board.page(), "/runs")
    page.get_by_role("button", name="Switch language").click()
    page.get_by_role("heading", name="运行").wait_for()
    page.reload()
    page.get_by_role("heading", name="运行").wait_for()
    assert page.locator("html").get_attribute("lang") == "zh-CN"
    page.context.close()


SLEEP = """
import time
for i in range(600):
    print("tick", i, flush=True)
    time.sleep(0.2)
"""
