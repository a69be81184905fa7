"""An error is a family, a code and values; the sentence comes from the catalogue."""

from trackbed.base.errors import BadInput, Conflict, Fault, Internal, by_status
from trackbed.base.logging import mask
from trackbed.base.messages import render


def test_an_error_says_what_happened_in_both_languages() -> None:
    error = Conflict("illegal_move", state="finished", to="queued", allowed="nothing")
    assert "finished" in str(error) and "queued" in error.text("zh")
    assert (error.http_status, error.exit_status) == (409, 4)


def test_all_faults_come_in_one_message_with_field_and_line() -> None:
    error = BadInput(
        "not_yet", what="x", faults=[Fault("not_yet", "window", 7, {"what": "window"}), Fault("not_yet", "notify")]
    )
    lines = str(error).splitlines()
    assert len(lines) == 3
    assert lines[1].strip().startswith("window (line 7): ")


def test_an_unknown_code_is_shown_with_its_values_rather_than_hidden() -> None:
    assert render("from_the_future", {"a": 1}) == 'from_the_future {"a": 1}'


def test_a_status_finds_its_family_again() -> None:
    assert by_status(409) is Conflict
    assert by_status(418) is Internal


def test_our_own_secrets_are_masked_in_a_line() -> None:
    secret = "tbp_" + "0123456789abcdefghjkmnpqrstvwxyz01234567"
    assert secret not in mask(f"token {secret} used")
    assert "tbp_0123" in mask(f"token {secret} used")
