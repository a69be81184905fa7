"""Locks and packs with the real uv: from requirements to an environment that starts anywhere, without an index."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from trackbed.base.errors import BadInput, NotFound, TrackbedError
from trackbed.sources import packs
from trackbed.sources.locking import lock_of, this_platform, this_python
from trackbed.sources.locks import Lock, parse, render
from trackbed.testing.wheels import index, sha256, wheel

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="packs are for Linux")


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    say = "def main():\n    import sys, beta_more\n    print('alpha', beta_more.z, sys.prefix)\n"
    wheel(
        folder, "tb-alpha", "1.0", {"tb_alpha.py": say}, scripts={"alpha-say": "tb_alpha:main"}, requires=["tb-beta>=1"]
    )
    wheel(
        folder,
        "tb-beta",
        "1.0",
        {"tb_beta.py": "", "tb_beta.pth": "beta_inside\n", "beta_inside/beta_more.py": "z = 3\n"},
    )
    wheel(folder, "tb-arm", "1.0", {"tb_arm.py": ""}, tag="cp311-cp311-manylinux_2_17_aarch64")
    wheel(folder, "tb-new", "1.0", {"tb_new.py": ""}, python=">=3.99")
    wheel(folder, "tb-path", "1.0", {"tb_path.pth": "/somewhere/else\n"})
    return folder


@pytest.fixture
def only_shelf(shelf: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "uv-cache"))
    return shelf


def locked(folder: Path, requirements: str) -> Lock:
    path = folder / "requirements.txt"
    path.write_text(requirements)
    return lock_of(path)


def built(lock: Lock, folder: Path) -> Path:
    packs.build(lock, packs.interpreter_for(this_python()), folder / "pack", log=folder / "log")
    return folder / "pack"


def test_requirements_become_a_lock_with_the_hash_of_every_wheel(only_shelf: Path, tmp_path: Path) -> None:
    lock = locked(tmp_path, "tb-alpha\n")
    assert lock.platforms == (this_platform(),)
    assert {one.name: one.hashes for one in lock.packages} == {
        "tb-alpha": (f"sha256:{sha256(only_shelf / 'tb_alpha-1.0-py3-none-any.whl')}",),
        "tb-beta": (f"sha256:{sha256(only_shelf / 'tb_beta-1.0-py3-none-any.whl')}",),
    }
    assert lock_of_text(tmp_path, render(lock)) == lock


def lock_of_text(folder: Path, text: str) -> Lock:
    path = folder / "requirements.lock"
    path.write_text(text)
    return lock_of(path)


def test_a_project_and_its_uv_lock_give_the_same_lock(
    only_shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("UV_DEFAULT_INDEX", index(tmp_path / "index", sorted(only_shelf.glob("*any.whl"))))
    (tmp_path / "pyproject.toml").write_text(
        f'[project]\nname = "mine"\nversion = "0"\nrequires-python = ">={this_python()}"\ndependencies = ["tb-alpha"]\n'
    )
    of_project = lock_of(tmp_path)
    done = subprocess.run([packs.uv.find(), "lock"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    of_uv = lock_of(tmp_path / "uv.lock")
    assert of_uv.packages == of_project.packages


def test_a_pack_starts_wherever_it_lies_with_scripts_and_path_files(
    only_shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack = built(locked(tmp_path, "tb-alpha\n"), tmp_path)
    moved = tmp_path / "far" / "away" / "copy"
    shutil.copytree(pack, moved, symlinks=True)
    shutil.rmtree(pack)
    assert [path for path in moved.rglob("*") if path.is_file() and os.fsencode(tmp_path) in path.read_bytes()] == []
    monkeypatch.setenv("PIP_FIND_LINKS", "/nowhere")  # nothing to install, nowhere to install from
    for at in ("one", "two"):
        python = packs.lay_out(moved, tmp_path / at / "environment", packs.interpreter_for(this_python()))
        said = subprocess.run(
            ["alpha-say"], env={"PATH": f"{python.parent}:/usr/bin:/bin"}, capture_output=True, text=True
        )
        assert said.stdout.split() == ["alpha", "3", str(tmp_path / at / "environment")], said.stderr
    facts = packs.facts_of(moved)
    assert [(one.name, one.version) for one in facts.packages] == [("tb-alpha", "1.0"), ("tb-beta", "1.0")]
    assert list(moved.rglob("*.pyc"))


@pytest.mark.skipif(os.geteuid() != 0, reason="a network namespace needs root")
def test_a_pack_starts_without_any_network(only_shelf: Path, tmp_path: Path) -> None:
    pack = built(locked(tmp_path, "tb-alpha\n"), tmp_path)
    python = packs.lay_out(pack, tmp_path / "environment", packs.interpreter_for(this_python()))
    said = subprocess.run(["unshare", "--net", str(python.parent / "alpha-say")], capture_output=True, text=True)
    if "unshare" in said.stderr and "failed" in said.stderr:
        pytest.skip(said.stderr)
    assert said.stdout.startswith("alpha 3"), said.stderr


def test_a_wrong_hash_is_refused_with_both(only_shelf: Path, tmp_path: Path) -> None:
    lock = locked(tmp_path, "tb-beta\n")
    wrong = parse(render(lock).replace(lock.packages[0].hashes[0], "sha256:" + "0" * 64))
    with pytest.raises(BadInput) as refused:
        built(wrong, tmp_path)
    assert refused.value.code == "environment_hash"
    assert refused.value.params["package"] == "tb-beta==1.0"
    assert refused.value.params["computed"] == lock.packages[0].hashes[0]


def test_a_yanked_version_is_noticed_at_lock_and_at_build(
    only_shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels = sorted(only_shelf.glob("tb_beta*"))
    url = index(tmp_path / "index", wheels, yanked={wheels[0].name: "broken maths"})
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", url)
    lock = locked(tmp_path, "tb-beta==1.0\n")
    assert [(note.code, note.params) for note in lock.notes] == [
        ("lock_yanked", {"package": "tb-beta==1.0", "why": "broken maths"})
    ]
    assert any(
        "tb-beta==1.0" in note and "broken maths" in note for note in packs.facts_of(built(lock, tmp_path)).notes
    )


@pytest.mark.parametrize(
    ("requirements", "code", "named"),
    [
        ("tb-arm", "environment_no_wheel", "tb-arm"),
        ("tb-new==1.0", "environment_other_python", "tb-new==1.0"),
        ("tb-nothing", "environment_package_missing", "tb-nothing"),
        ("tb-beta==9", "environment_package_missing", "tb-beta==9"),
        ("tb-beta<1\ntb-alpha", "environment_unsolvable", "tb-beta"),
    ],
)
def test_what_cannot_be_locked_is_named(
    only_shelf: Path, tmp_path: Path, requirements: str, code: str, named: str
) -> None:
    with pytest.raises(TrackbedError) as refused:
        locked(tmp_path, requirements + "\n")
    assert refused.value.code == code
    assert named in refused.value.text()


def test_a_package_with_an_absolute_path_is_no_part_of_a_pack(only_shelf: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput) as refused:
        built(locked(tmp_path, "tb-path\n"), tmp_path)
    assert refused.value.code == "environment_not_relocatable"
    assert refused.value.params["path"].endswith("tb_path.pth")


def test_a_lock_for_another_platform_or_python_is_refused(only_shelf: Path, tmp_path: Path) -> None:
    lock = locked(tmp_path, "tb-beta\n")
    other = "linux-aarch64" if this_platform() == "linux-x86_64" else "linux-x86_64"
    with pytest.raises(BadInput) as refused:
        built(Lock(lock.python, (other,), lock.packages), tmp_path)
    assert refused.value.code == "environment_platform"
    with pytest.raises(NotFound) as missing:
        packs.interpreter_for("3.99")
    assert missing.value.code == "environment_interpreter"


def test_the_live_environment_can_be_locked(only_shelf: Path, tmp_path: Path) -> None:
    pack = built(locked(tmp_path, "tb-alpha\n"), tmp_path)
    python = packs.lay_out(pack, tmp_path / "environment", packs.interpreter_for(this_python()))
    lock = lock_of("current", executable=str(python))
    assert [(one.name, one.version) for one in lock.packages] == [("tb-alpha", "1.0"), ("tb-beta", "1.0")]
