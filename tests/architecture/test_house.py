"""The house keeps its own rules: floors, catalogues, sizes, who may import whom."""

import ast
import json
import re
import tomllib
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
SRC = REPO / "src" / "trackbed"
MODULES = sorted(SRC.rglob("*.py"))
ERRORS = "BadInput|Unauthenticated|Denied|NotFound|Conflict|TooLarge|NotYet|Damaged|Internal|Unavailable|StorageFull"
RAISED = re.compile(rf"\b(?:{ERRORS}|Fault)\(\s*\"([a-z0-9_.]+)\"")
REASONS = re.compile(r"\bReason\(\s*code=\"([a-z0-9_.]+)\"")
EVENTS = re.compile(r"\bEvent\(\s*(?:kind=)?\"([a-z0-9_.]+)\"")

# Modules that pass 400 lines or functions that pass 80, each with one line of reason.
LONG_MODULES: dict[str, str] = {}


def catalogue(lang: str) -> dict[str, str]:
    merged: dict[str, str] = {}
    for path in sorted((SRC / "base" / "messages" / lang).glob("*.json")):
        for code, text in json.loads(path.read_text(encoding="utf-8")).items():
            assert code not in merged, f"{code} stands twice ({path.name})"
            merged[code] = text
    return merged


def test_both_catalogues_have_the_same_codes_and_the_same_holes() -> None:
    en, zh = catalogue("en"), catalogue("zh")
    assert sorted(set(en) ^ set(zh)) == []
    holes = re.compile(r"\{[a-z_0-9]+\}")
    wrong = [code for code in en if set(holes.findall(en[code])) != set(holes.findall(zh[code]))]
    assert wrong == []


def test_every_code_in_the_source_has_a_sentence() -> None:
    en = catalogue("en")
    missing: list[str] = []
    for path in MODULES:
        text = path.read_text(encoding="utf-8")
        where = path.relative_to(SRC)
        missing += [f"{where}: {code}" for code in RAISED.findall(text) if code not in en]
        missing += [
            f"{where}: reason.{code}" for code in REASONS.findall(text) if f"reason.{code}" not in en and code not in en
        ]
        missing += [f"{where}: event.{code}" for code in EVENTS.findall(text) if f"event.{code}" not in en]
    assert missing == []


def test_every_state_and_cause_has_a_word_in_both_languages() -> None:
    from trackbed.domain.states import AttemptState, Cause, RunState

    for lang in ("en", "zh"):
        texts = catalogue(lang)
        assert [s for s in RunState if f"state.{s}" not in texts] == []
        assert [s for s in AttemptState if f"state.{s}" not in texts] == []
        assert [c for c in Cause if f"cause.{c}" not in texts] == []


def test_only_up_and_quickstart_may_reach_into_the_server() -> None:
    guilty = [
        path.name
        for path in (SRC / "cli").rglob("*.py")
        if "trackbed.server" in path.read_text() and path.name not in ("up.py", "quickstart.py")
    ]
    assert guilty == []


def test_no_import_of_ours_hides_in_a_function() -> None:
    guilty = []
    for path in MODULES:
        where = path.relative_to(SRC).as_posix()
        if where.startswith("cli/") or where == "__init__.py":
            continue  # lazy commands; the package's own __getattr__
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for inner in ast.walk(node):
                    if isinstance(inner, ast.ImportFrom) and (inner.module or "").startswith("trackbed"):
                        guilty.append(f"{where}:{inner.lineno}")
                    if isinstance(inner, ast.Import) and any(a.name.startswith("trackbed") for a in inner.names):
                        guilty.append(f"{where}:{inner.lineno}")
    assert guilty == []


def test_names_say_something() -> None:
    bad = {"utils", "util", "helpers", "helper", "common", "misc", "manager"}
    assert [p for p in MODULES if p.stem in bad or bad & set(p.relative_to(SRC).parts)] == []


def test_no_module_grows_without_a_reason() -> None:
    long = {}
    for path in MODULES:
        where = path.relative_to(SRC).as_posix()
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines > 500 and where not in LONG_MODULES and not where.startswith("testing/"):
            long[where] = lines
    assert long == {}


def test_every_room_is_in_the_torch_contract() -> None:
    contracts = tomllib.loads((REPO / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    named = next(c for c in contracts if c["name"].startswith("torch"))["source_modules"]
    rooms = {f"trackbed.{p.name}" for p in SRC.iterdir() if (p / "__init__.py").exists()}
    assert rooms - set(named) == {"trackbed.engine", "trackbed.worker", "trackbed.testing"}


def test_the_web_lock_file_records_no_download_addresses() -> None:
    lock = REPO / "web" / "package-lock.json"
    text = lock.read_text()
    assert '"resolved"' not in text
    assert len(set(re.findall(r"@rolldown/binding-[a-z0-9-]+", text))) >= 10


@pytest.mark.parametrize(
    "name", ["README.md", "README.zh.md", "CHANGELOG.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "LICENSE"]
)
def test_the_front_documents_are_there(name: str) -> None:
    assert (REPO / name).stat().st_size > 500


def test_the_architecture_page_is_short_enough_to_be_read() -> None:
    assert len((REPO / "ARCHITECTURE.md").read_text().splitlines()) <= 200
