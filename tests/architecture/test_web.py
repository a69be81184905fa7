"""The dashboard keeps its own rules: nothing from outside, types as the wire has them, a lock that any registry serves."""

import json
import re
import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
WEB = REPO / "web"
LOCK = (WEB / "package-lock.json").read_text(encoding="utf-8")


def test_the_lock_names_no_registry_and_holds_every_platform() -> None:
    assert '"resolved"' not in LOCK
    packages = json.loads(LOCK)["packages"]
    assert len([name for name in packages if "@rolldown/binding-" in name]) >= 10
    assert [
        name for name, facts in packages.items() if name and not facts.get("link") and "integrity" not in facts
    ] == []


def test_the_lock_is_of_this_package_file() -> None:
    wanted = json.loads((WEB / "package.json").read_text(encoding="utf-8"))
    locked = json.loads(LOCK)["packages"][""]
    assert (locked["dependencies"], locked["devDependencies"]) == (wanted["dependencies"], wanted["devDependencies"])


def test_the_types_of_the_page_are_the_records_of_the_wire() -> None:
    done = subprocess.run([sys.executable, WEB / "scripts" / "wire_types.py", "--check"], timeout=60)
    assert done.returncode == 0, "run python web/scripts/wire_types.py"


def test_no_page_asks_anything_of_the_internet() -> None:
    sources = [path for path in (*WEB.glob("src/**/*"), *WEB.glob("public/*"), WEB / "index.html") if path.is_file()]
    outside = re.compile(r"(?:src|href|url|import)\W{1,3}https?://|//cdn\.|googleapis")
    assert [str(path) for path in sources if outside.search(path.read_text(encoding="utf-8"))] == []


def test_no_script_stands_inline_in_the_page() -> None:
    page = (WEB / "index.html").read_text(encoding="utf-8")
    assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", page))


def test_the_mark_of_a_build_changes_with_the_sentences_of_the_server(tmp_path: Path) -> None:
    sys.path.insert(0, str(REPO))
    try:
        from hatch_build import fingerprint
    except ImportError:  # hatchling is there at build time only
        return
    finally:
        sys.path.remove(str(REPO))
    web, messages = tmp_path / "web", tmp_path / "src" / "trackbed" / "base" / "messages" / "en"
    web.mkdir()
    messages.mkdir(parents=True)
    (messages / "base.json").write_text("{}")
    before = fingerprint(web)
    (messages / "base.json").write_text('{"a": "b"}')
    assert fingerprint(web) != before
