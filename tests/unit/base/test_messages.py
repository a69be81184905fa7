"""Sentences read as people write them: counted words, and punctuation of the language."""

import re

from trackbed.base.messages import catalogue, render

_NARROW = re.compile(r"[\u4e00-\u9fff][,;:?!]")


def test_counted_words_follow_their_number() -> None:
    assert render("spec_wrong", {"count": 1}).startswith("The spec has 1 fault; ")
    assert render("spec_wrong", {"count": 12}).startswith("The spec has 12 faults; ")


def test_chinese_is_written_with_chinese_punctuation() -> None:
    narrow = {code: text for code, text in catalogue("zh").items() if _NARROW.search(re.sub(r"`[^`]*`", "", text))}
    assert not narrow, "python scripts/zh.py mends them"
