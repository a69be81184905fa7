"""The performance page says what the file says."""

import importlib.util
import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_spec = importlib.util.spec_from_file_location("performance_page", ROOT / "bench" / "performance_page.py")
assert _spec is not None and _spec.loader is not None
performance = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(performance)


def test_the_table_of_the_performance_page_is_made_from_the_results() -> None:
    text, rows = performance.PAGE.read_text(), json.loads(performance.RESULT.read_text())
    assert rows and performance.page(text, rows) == text, "run: python bench/performance_page.py"
    for row in rows:
        assert row["what"] in text
