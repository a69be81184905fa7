"""Locks: one canonical text for one environment; what cannot be pinned is named with its line."""

import pytest

from trackbed.base.errors import BadInput, NotFound, Unavailable
from trackbed.sources import uv
from trackbed.sources.locks import Locked, merge, parse, render

A, B = "sha256:" + "a" * 64, "sha256:" + "b" * 64
HEAD = "# trackbed lock 1\n# python 3.11\n# platforms linux-x86_64\n"


def test_one_environment_has_one_text_whatever_the_order_and_spelling() -> None:
    one = parse(HEAD + f'Foo_Bar==1.0 --hash={B} --hash={A}\nzed==2 ; python_version < "4" --hash={A}\n')
    other = parse(
        HEAD
        + f"zed==2 ; python_version  <  '4' \\\n  --hash={A}\n# why\nfoo-bar==1.0 \\\n --hash={A} \\\n --hash={B}  # via zed\n"
    )
    assert render(one) == render(other)
    assert one.digest == other.digest
    assert parse(render(one)) == one
    assert one.packages[0] == Locked("foo-bar", "1.0", "", (A, B))


def test_the_digest_changes_with_version_hash_python_and_platform() -> None:
    text = HEAD + f"foo==1.0 --hash={A}\n"
    variants = [text, text.replace("1.0", "1.1"), text.replace(A, B), text.replace("3.11", "3.12"),
                text.replace("linux-x86_64", "linux-aarch64 linux-x86_64")]  # fmt: skip
    assert len({parse(one).digest for one in variants}) == len(variants)


def test_everything_that_is_not_pinned_is_told_at_once_with_its_line() -> None:
    with pytest.raises(BadInput) as refused:
        parse(HEAD + f"foo>=1\nbar==1.0\n-r other.txt\nbaz @ git+https://x/y\nok==1 --hash={A}\nok==1 --hash={A}\n")
    told = {(fault.code, fault.line) for fault in refused.value.faults}
    assert told == {
        ("lock_not_pinned", 4),
        ("lock_no_hash", 5),
        ("lock_option", 6),
        ("lock_not_pinned", 7),
        ("lock_twice", None),
    }


def test_an_index_in_a_lock_is_left_out_and_said() -> None:
    lock = parse(
        f"--index-url https://u:p@pypi.example/simple\nfoo==1 --hash={A}\n", python="3.11", platforms=["linux-x86_64"]
    )
    assert [note.code for note in lock.notes] == ["lock_index_left_out"]
    assert "pypi.example" not in render(lock)


def test_what_differs_between_platforms_gets_a_marker() -> None:
    x86 = parse(HEAD + f"both==1 --hash={A}\nonly==2 --hash={A}\n")
    arm = parse(HEAD.replace("x86_64", "aarch64") + f"both==1 --hash={A}\n")
    lock = merge({"linux-x86_64": x86, "linux-aarch64": arm}, "3.11")
    assert lock.platforms == ("linux-aarch64", "linux-x86_64")
    assert [(one.name, one.marker) for one in lock.packages] == [("both", ""), ("only", "platform_machine == 'x86_64'")]


def test_a_lock_of_a_newer_format_is_refused() -> None:
    with pytest.raises(BadInput) as refused:
        parse("# trackbed lock 2\n")
    assert refused.value.code == "lock_newer"


def test_settings_of_pip_reach_uv_and_uvs_own_win(tmp_path_factory: pytest.TempPathFactory) -> None:
    home = tmp_path_factory.mktemp("home")
    (home / ".pip").mkdir()
    (home / ".pip" / "pip.conf").write_text(
        "[global]\nindex-url = https://in.house/simple\n[install]\nfind-links = /a /b\n"
    )
    found = uv.index_settings({"HOME": str(home), "PIP_EXTRA_INDEX_URL": "https://x https://y", "PIP_NO_INDEX": "1"})
    assert found.env["UV_DEFAULT_INDEX"] == "https://in.house/simple"
    assert found.env["UV_INDEX"] == "https://x https://y"
    assert found.env["UV_INDEX_STRATEGY"] == "unsafe-best-match"
    assert found.env["UV_FIND_LINKS"] == "/a,/b"
    assert found.flags == ("--no-index",)
    own = uv.index_settings({"HOME": str(home), "UV_DEFAULT_INDEX": "https://mine"})
    assert own.env["UV_DEFAULT_INDEX"] == "https://mine"
    assert "UV_FIND_LINKS" not in own.env


@pytest.mark.parametrize(
    ("said", "family", "code"),
    [
        (
            "Hash mismatch for `beta==1.0`\n\n Expected:\n   sha256:00\n\n Computed:\n  sha256:11",
            BadInput,
            "environment_hash",
        ),
        ("Because tb==1.0 has no wheels with a matching platform tag (e.g. x)", BadInput, "environment_no_wheel"),
        (
            "Because nothere was not found in the package registry and you require nothere",
            NotFound,
            "environment_package_missing",
        ),
        (
            "Because there is no version of alpha==2.0 and you require alpha==2.0",
            NotFound,
            "environment_package_missing",
        ),
        ("Because tb-new==1.0 requires Python >=3.13 and you require tb-new", BadInput, "environment_other_python"),
        ("error sending request for url (http://x)\n tcp connect error", Unavailable, "environment_index_away"),
        (
            "Because you require beta==1.0 and beta>=1.1, we can conclude that your requirements are unsatisfiable.",
            BadInput,
            "environment_unsolvable",
        ),
        ("something new from https://me:word@in.house/x", BadInput, "environment_uv_refused"),
    ],
)
def test_what_uv_refuses_is_told_by_name(said: str, family: type, code: str) -> None:
    error = uv.refusal(said)
    assert (type(error), error.code) == (family, code)
    assert "word" not in error.text()
