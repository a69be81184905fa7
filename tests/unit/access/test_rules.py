"""What names may look like, how long secrets live, what is kept of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trackbed.access.rules import checked_name, csrf_of, digest_of, is_expired
from trackbed.base.errors import BadInput


@pytest.mark.parametrize("name", ["ada", "A.b-c_9", "李雷", "Ökonom", "9", "x" * 100])
def test_a_name_is_one_word_of_any_script(name: str) -> None:
    assert checked_name(name, what="a person") == name


@given(st.text(max_size=20))
def test_no_name_holds_what_separates_references(name: str) -> None:
    try:
        checked_name(name, what="a project")
    except BadInput:
        return
    assert not set(name) & set("/#@: \t\n\\'\"<>")
    assert not name.startswith((".", "-", "_"))


def test_zero_means_never_and_the_last_moment_is_already_over() -> None:
    assert not is_expired(0, 10**18)
    assert not is_expired(11, 10)
    assert is_expired(10, 10)


@given(st.text(min_size=1), st.text(min_size=1))
def test_what_is_kept_of_a_secret_tells_secrets_apart_and_does_not_hold_them(one: str, other: str) -> None:
    assert (digest_of(one) == digest_of(other)) == (one == other)
    assert (csrf_of(one) == csrf_of(other)) == (one == other)
    assert digest_of(one) != csrf_of(one)
    assert len(digest_of(one)) == len(csrf_of(one)) == 64
