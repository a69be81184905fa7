"""The environment record of real interpreters."""

import importlib.metadata
import json
import sys
import time
from pathlib import Path

import pytest

from trackbed.base.errors import BadInput
from trackbed.sources.environment import differences, digest_of, packages_on, record_current, record_of
from trackbed.testing.pace import slowness
from trackbed.wire.runs import EnvironmentRecord


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of an import path with one package of each kind."""
    for name, files in {
        "one-1.0.dist-info": {"METADATA": "Metadata-Version: 2.1\nName: One\nVersion: 1.0\n\nText", "RECORD": "one.py,,\n"},
        "two_x-2.dist-info": {
            "METADATA": "Name: Two_X\nVersion: 2\n", "RECORD": "two.py,,\n",
            "direct_url.json": json.dumps({"url": "file:///home/a%20b", "dir_info": {"editable": True}}),
        },
        "vcs-3.dist-info": {
            "METADATA": "Name: vcs\nVersion: 3\n", "RECORD": "x",
            "direct_url.json": json.dumps({"url": "https://u:pw@h/x.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}}),
        },
        "old.egg-info": {"PKG-INFO": "Name: old\nVersion: 0.1\n"},
        "broken.dist-info": {"METADATA": "no header"},
    }.items():  # fmt: skip
        (tmp_path / name).mkdir()
        for file, text in files.items():
            (tmp_path / name / file).write_text(text)
    return tmp_path


def on(site: Path) -> EnvironmentRecord:
    record = EnvironmentRecord(python="CPython 3", packages=packages_on([str(site), "/nowhere", ""]))
    record.digest = digest_of(record)
    return record


def test_every_installed_package_is_on_the_record():
    record = record_of(sys.executable)
    installed = {
        dist.name.lower().replace("_", "-").replace(".", "-"): dist.version
        for dist in importlib.metadata.distributions()
    }
    assert {one.name: one.version for one in record.packages}.items() <= installed.items()
    assert {one.name for one in record.packages} >= {"msgspec", "blake3", "pytest"}
    assert all(len(one.digest) == 64 for one in record.packages)
    assert record.python.startswith("CPython 3.")
    assert record.digest == digest_of(record)


def test_this_interpreter_and_one_started_afresh_agree():
    assert record_of(sys.executable).digest == record_current().digest


def test_it_takes_less_than_half_a_second_of_a_core():
    """88 packages with torch among them took 0.35 s; a job waits for it at its start."""
    record_current()
    started = time.process_time()
    record_current()
    assert time.process_time() - started < 0.5 * slowness()


def test_sources_of_packages_are_noted_without_passwords(site: Path):
    packages = {one.name: one for one in on(site).packages}
    assert list(packages) == ["old", "one", "two-x", "vcs"]
    assert packages["two-x"].source == "editable file:///home/a b"
    assert packages["vcs"].source == "https://h/x.git@abc"
    assert packages["one"].source == ""


def test_the_digest_moves_with_a_file_list_and_not_with_the_place_of_the_interpreter(site: Path):
    before = on(site)
    moved = on(site)
    moved.executable = "/elsewhere/python"
    assert digest_of(moved) == before.digest
    (site / "one-1.0.dist-info" / "RECORD").write_text("one.py,changed,\n")
    assert on(site).digest != before.digest


def test_differences_name_what_is_not_equal(site: Path):
    before = on(site)
    (site / "one-1.0.dist-info" / "RECORD").write_text("other\n")
    (site / "two_x-2.dist-info" / "METADATA").write_text("Name: two-x\nVersion: 3\n")
    (site / "old.egg-info" / "PKG-INFO").unlink()
    (site / "broken.dist-info" / "METADATA").write_text("Name: fresh\nVersion: 1\n")
    after = on(site)
    after.python = "CPython 9"
    found = differences(before, after)
    assert [name for name, _, _ in found] == ["python", "fresh", "old", "one", "two-x"]
    assert found[1][1:] == ("", "1")
    assert found[2][1:] == ("0.1", "")
    assert found[3][1] != found[3][2]
    assert found[4][1:] == ("2 from editable file:///home/a b", "3 from editable file:///home/a b")
    assert differences(before, before) == []


@pytest.mark.parametrize("executable", ["/nowhere/python", "/bin/false", "/bin/echo"])
def test_what_is_no_interpreter_is_told(executable: str):
    with pytest.raises(BadInput, match="Check that it is a Python interpreter"):
        record_of(executable)
