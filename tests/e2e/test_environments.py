"""A run in an environment of its own: locked, packed once, started again with no index at all."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e_harness import REPO, Installation, installation

from trackbed.testing.wheels import wheel

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(not sys.platform.startswith("linux"), reason="packs are for Linux")]
SPEC = """\
project: packed
environment: requirements.lock
resources: {cards: 1}
run: alpha-say && python -c "import sys; print(sys.prefix, sorted(m for m in ('trackbed', 'msgspec') if __import__('importlib.util').util.find_spec(m)))"
"""


@pytest.fixture(scope="module")
def inst(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    shelf = tmp_path_factory.mktemp("wheels")
    say = "def main():\n    import tb_beta\n    print('alpha says', tb_beta.x)\n"
    wheel(shelf, "tb-alpha", "1.0", {"tb_alpha.py": say}, scripts={"alpha-say": "tb_alpha:main"}, requires=["tb-beta"])
    wheel(shelf, "tb-beta", "1.0", {"tb_beta.py": "x = 41\n"})
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
            patch.delenv(name)
        patch.setenv("PIP_CONFIG_FILE", os.devnull)
        patch.setenv("PIP_NO_INDEX", "1")
        patch.setenv("PIP_FIND_LINKS", str(shelf))
        patch.setenv("UV_CACHE_DIR", str(tmp_path_factory.mktemp("uv")))
        patch.setenv("PYTHONPATH", "")
        patch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        with installation(tmp_path_factory.mktemp("inst"), cards=1) as running:
            running.shelf = shelf  # type: ignore[attr-defined]
            yield running


def test_a_locked_run_starts_from_its_pack_even_when_the_index_is_gone(inst: Installation, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("tb-alpha\n")
    (tmp_path / "trackbed.yaml").write_text(SPEC)
    told = inst.json("env", "lock", "requirements.txt", cwd=tmp_path)
    assert told["packages"] == 2
    first = inst.json("submit", "trackbed.yaml", cwd=tmp_path)["run_id"]
    inst.cli("wait", first)
    said = inst.cli("logs", first).stdout
    assert "alpha says 41" in said
    assert "environment []" in said, "nothing of the node is in it"
    shown = inst.json("env", "show", first)
    assert shown["packs"][0]["state"] == "ready"
    assert shown["facts"]["environment"]["digest"] == told["digest"]
    shutil.rmtree(inst.shelf)  # type: ignore[attr-defined]
    again = inst.json("submit", "trackbed.yaml", cwd=tmp_path)["run_id"]
    inst.cli("wait", again)
    assert "alpha says 41" in inst.cli("logs", again).stdout
    same = inst.json("env", "diff", first, again)
    assert same == {"before": "packed#1", "after": "packed#2"}
    other = inst.cli("env", "diff", first, "here", check=False)
    assert other.returncode == 1 and "tb-alpha" in other.stdout
    named = inst.json("env", "name", "base", first)
    assert named["digest"] == told["digest"]


def test_the_commands_in_our_own_documents_work(inst: Installation) -> None:
    ran = inst.json("docs", "check", str(REPO))
    assert [(one["document"], one["status"]) for one in ran] == [("docs/howto/docs-with-the-code.md", 0)]
