"""Choosing, grouping, comparing and writing runs on the board."""

from __future__ import annotations

import re
from typing import Any

import pytest

expect = pytest.importorskip("playwright.sync_api", reason="BROWSER TESTS SKIPPED: pip install playwright").expect

pytestmark = [pytest.mark.browser, pytest.mark.e2e]

TEMPLATE = """
name: small
description: A small one
spec: {run: "python a.py --lr {{params.lr}}", code: ".", params: {lr: 0.1}}
required: [description]
schema: {properties: {params: {properties: {lr: {type: number, maximum: 1, title: Learning rate}}}}}
"""


def test_a_completion_is_taken_by_keyboard(board: Any) -> None:
    page = board.open(board.page(), "/runs")
    page.get_by_label("Filter runs").click()
    page.keyboard.type("state = fai")
    page.get_by_role("option", name="'failed'").wait_for()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Filter runs")).to_have_value("state = 'failed'")
    page.wait_for_url(re.compile("q=state"))
    expect(page.locator("[data-run]")).to_have_count(1)
    page.context.close()


def test_groups_have_a_mean_and_open_as_their_runs(board: Any) -> None:
    page = board.open(board.page(), "/runs?cols=state,name,metrics.train%2Floss")
    page.get_by_role("button", name="Group", exact=True).click()
    page.get_by_role("checkbox", name="State").check()
    page.keyboard.press("Escape")
    table = page.get_by_role("region", name="Groups of runs")
    expect(table.locator("tbody tr")).to_have_count(2)
    table.get_by_role("button", name="Failed").click()
    page.wait_for_selector(f"[data-run='{board.failed}']")
    assert page.locator("[data-run]").count() == 1
    assert "group" not in page.url
    page.context.close()


def test_a_saved_view_brings_filter_and_columns_back(board: Any) -> None:
    page = board.open(board.page(), "/runs?q=state%20%3D%20%27failed%27&cols=state,name,params.lr")
    page.get_by_role("button", name="Views").click()
    page.get_by_role("menuitem", name="Save this view").click()
    page.get_by_label("Name").fill("Broken ones")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("button", name="Broken ones").wait_for()
    board.open(page, "/runs")
    page.get_by_role("button", name="Views").click()
    page.get_by_role("menuitem", name="Broken ones").click()
    page.wait_for_url(re.compile("q=state.*failed"))
    expect(page.locator("[data-run]")).to_have_count(1)
    page.get_by_role("columnheader", name="lr").wait_for()
    page.context.close()


def test_two_chosen_runs_are_compared_and_held_against_each_other(board: Any) -> None:
    page = board.open(board.page(), "/runs")
    for run in (board.failed, board.outside):
        page.locator(f"[data-run='{run}'] input").check()
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url(re.compile("/compare"))
    page.wait_for_selector("[data-chart='train/loss'][data-drawn]")
    page.get_by_role("tab", name="Params").click()
    row = page.get_by_role("row", name=re.compile("^lr "))
    expect(row).to_contain_text("0.0003")
    expect(row).to_contain_text("0.1")
    board.open(page, f"/diff/{board.failed}/{board.outside}")
    page.get_by_role("heading", name="Two runs").wait_for()
    page.get_by_text("Only one of the runs has captured code.").wait_for()
    page.context.close()


def test_a_pinned_metric_stands_on_top_and_another_metric_is_the_axis(board: Any) -> None:
    page = board.open(board.page(), f"/runs/{board.outside}/metrics")
    page.wait_for_selector("[data-drawn]")
    page.get_by_role("button", name="Pin eval/loss to the top").click()
    expect(page.get_by_role("heading", level=2).first).to_contain_text("Pinned")
    assert page.locator("[data-chart]").first.get_attribute("data-chart") == "eval/loss"
    page.reload()
    expect(page.get_by_role("heading", level=2).first).to_contain_text("Pinned")
    page.get_by_role("combobox", name="X axis").click()
    page.get_by_role("option", name="val/AR@100").click()
    page.wait_for_url(re.compile("x=metrics"))
    page.wait_for_selector("[data-drawn]")
    assert page.get_by_role("alert").count() == 0
    page.context.close()


def test_a_line_of_the_log_has_an_address(board: Any) -> None:
    page = board.open(board.page(), f"/runs/{board.failed}/logs")
    page.get_by_role("button", name="To the beginning").click()
    line = page.locator("[data-index]").filter(has_text="line 5 数据")
    line.get_by_role("link").click()
    page.wait_for_url(re.compile("line="))
    board.open(page, page.url.removeprefix(board.url))
    page.locator("[data-found='true']").filter(has_text="line 5 数据").wait_for()
    page.context.close()


def test_form_and_file_of_a_template_follow_each_other(board: Any) -> None:
    path = board.work / "small.yaml"
    path.write_text(TEMPLATE)
    board.inst.cli("template", "add", str(path))
    page = board.open(board.page(), "/new?template=small")
    text = page.get_by_label("trackbed.yaml")
    page.get_by_label("Learning rate").fill("3")
    expect(text).to_have_value(re.compile("lr: 3"))
    page.get_by_role("button", name="Dry run").click()
    expect(page.locator("[data-field='params.lr']")).to_have_attribute("aria-invalid", "true")
    expect(page.locator("[data-field='description']")).to_have_attribute("aria-invalid", "true")
    text.fill("template: small@1\ndescription: why\nparams: {lr: 0.5}\n")
    expect(page.get_by_label("Learning rate")).to_have_value("0.5")
    expect(page.locator("[data-field='description']")).to_have_value("why")
    page.get_by_role("button", name="Dry run").click()
    page.get_by_text("All is well").wait_for()
    page.context.close()
