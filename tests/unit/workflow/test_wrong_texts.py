"""The exact words of every wrong spec, in both languages: field, line, what is wrong with its value, the way out.

The words are kept in `wrong_texts.json`. After a change of a sentence look at the difference that
`python tests/unit/workflow/test_wrong_texts.py` makes there.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from test_wrong_specs import WRONG

from trackbed.workflow import spec

KEPT = Path(__file__).with_name("wrong_texts.json")
LEAST = 40


def told(text: str) -> dict[str, Any]:
    faults = spec.wrong(spec.read(text).faults).faults
    return {"line": [fault.line for fault in faults], "field": [fault.field for fault in faults],
            "en": [fault.text("en") for fault in faults], "zh": [fault.text("zh") for fault in faults]}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_spec_is_told_in_these_words(name: str) -> None:
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    assert told(WRONG[name].text) == kept[name]


def test_there_are_at_least_forty_and_none_is_kept_for_nothing() -> None:
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    assert len(WRONG) >= LEAST and set(kept) == set(WRONG)


def test_each_has_its_line_and_two_sentences_in_both_languages() -> None:
    for name, words in json.loads(KEPT.read_text(encoding="utf-8")).items():
        for line, en, zh in zip(words["line"], words["en"], words["zh"], strict=True):
            assert line is None or (f"line {line}" in en and f"第 {line} 行" in zh), name
            assert re.search(r"[.?!)] ?$", en) and len(re.findall(r"[.?!:](?: |$)", en)) >= 2, (name, en)
            assert re.search(r"[\u4e00-\u9fff]", zh) and re.search(r"[。？！）]$", zh), (name, zh)
            assert not re.search(r"\{[a-z_]+\}(?!\})", re.sub(r"\{\{.*?\}\}", "", en)) or "{" in WRONG[name].text, (
                name,
                en,
            )


if __name__ == "__main__":
    KEPT.write_text(
        json.dumps({name: told(one.text) for name, one in WRONG.items()}, ensure_ascii=False, indent=1) + "\n",
        encoding="utf-8",
    )
