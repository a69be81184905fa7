"""Writes the tables of docs/explanation/performance.md from bench/results/tracking.json.

python bench/performance_page.py
"""

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "explanation" / "performance.md"
RESULT = ROOT / "bench" / "results" / "tracking.json"
BEGIN, END = "<!-- from bench/results/tracking.json -->", "<!-- end -->"


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as a table, and below it what they were measured with."""
    lines = ["| what | ours | MLflow | ratio | target | holds | load |", "| --- | --- | --- | --- | --- | --- | --- |"]
    for row in rows:
        cells = [
            row["what"], f"{_number(row['ours'])} {row['unit']}",
            "" if row["peer"] is None else f"{_number(row['peer'])} {row['unit']}",
            "" if row["ratio"] is None else f"{_number(row['ratio'])}x", row["target"],
            {None: "", True: "yes", False: "no"}[row["holds"]], str(row["load"]),
        ]  # fmt: skip
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    synced = {json.dumps(row["durability"], sort_keys=True): row["durability"] for row in rows if "durability" in row}
    lines += ["", "How both synced:", ""]
    lines += [f"- ours {one['ours']}; MLflow {one['peer']}" for one in synced.values()]
    told = {
        f"`{row['command']}` on {row['hardware']}, scale {row['scale']}, MLflow {row['versions'].get('mlflow', '-')}"
        for row in rows
    }
    return "\n".join([*lines, "", "Measured by:", "", *(f"- {one}" for one in sorted(told))])


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def page(text: str, rows: list[dict[str, Any]]) -> str:
    """The page with its table made anew."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{table(rows)}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(), json.loads(RESULT.read_text())))
