"""What is said of a run and an attempt, from values alone."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trackbed.base.errors import BadInput
from trackbed.base.messages import render
from trackbed.clusters.engine import Observation, Phase
from trackbed.domain.lease import Contact
from trackbed.server.flows.reproduce import first_difference, pinned
from trackbed.server.loops.watch import decide
from trackbed.tracking.runs import _decode_cursor, _encode_cursor, _patch_values, most_cards
from trackbed.tracking.runs_attempts import order_for
from trackbed.tracking.runs_views import why_ended
from trackbed.wire.attempts import ExitReport, RankReport
from trackbed.wire.spec import DataPin, FromPin, RegisterRule, Resources, Spec, Stage


def report(*ranks: RankReport, **evidence: Any) -> ExitReport:
    return ExitReport(epoch=1, cause="killed", ranks=list(ranks), evidence=evidence)


def test_the_first_rank_that_went_wrong_is_named_with_its_signal_or_status():
    why = why_ended(report(RankReport(rank=0, exit_code=1), RankReport(rank=1, signal=9), first_rank=1))
    assert why is not None and (why.code, why.params) == ("rank_signal", {"rank": 1, "signal": 9})
    why = why_ended(report(RankReport(rank=0, exit_code=0), RankReport(rank=1, exit_code=3)))
    assert why is not None and (why.code, why.params) == ("rank_exit", {"rank": 1, "code": 3})
    assert why_ended(report(RankReport(rank=0, exit_code=0))) is None


@pytest.mark.parametrize(
    ("evidence", "code"),
    [
        ({"code": "environment_drift", "params": {"count": 1, "changes": "a 1 -> 2"}, "message": "…"}, "environment_drift"),
        ({"code": "storage_blob_missing", "message": "no such bytes"}, "not_prepared"),
        ({"missing_products": ["shards"]}, "products_not_left"),
        ({"outputs_not_kept": "storage_full"}, "outputs_not_kept"),
        ({"checkpoint_not_kept": "storage_full"}, "checkpoint_not_kept"),
        ({"folder": "missing"}, "folder_missing"),
    ],
)  # fmt: skip
def test_an_end_without_a_wrong_rank_is_explained_too(evidence: dict[str, Any], code: str):
    why = why_ended(report(RankReport(rank=0, exit_code=0), **evidence))
    assert why is not None and why.code == code
    for lang in ("en", "zh"):
        assert "{" not in render(f"reason.{code}", why.params, lang)


def attempt(**columns: Any) -> Any:
    base = {
        "order_kind": "stop", "order_id": "o1", "order_withdrawn": 0, "order_grace_s": 5.0, "order_reason": "",
        "state": "running", "lost_us": 0,
    }  # fmt: skip
    return SimpleNamespace(**{**base, **columns})


def test_an_order_is_given_until_it_is_seen_and_taken_back_only_where_it_was_seen():
    given_order = order_for(attempt(), "")
    assert given_order is not None and given_order.kind == "stop" and not given_order.withdrawn
    assert order_for(attempt(), "o1") is None
    assert order_for(attempt(order_withdrawn=1), "") is None
    taken_back = order_for(attempt(order_withdrawn=1), "o1")
    assert taken_back is not None and taken_back.withdrawn
    assert order_for(attempt(order_kind=""), "") is None


@given(st.one_of(st.none(), st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False), st.text()))
def test_a_cursor_gives_back_what_was_put_into_it(value: Any):
    assert _decode_cursor(_encode_cursor(value, "run_x")) == (value, "run_x")


@pytest.mark.parametrize("cursor", ["%%%", "bm90IGpzb24", "W10", "é"])
def test_what_is_no_cursor_is_refused(cursor: str):
    with pytest.raises(BadInput):
        _decode_cursor(cursor)


def test_every_wrong_field_of_a_change_is_named():
    with pytest.raises(BadInput) as refused:
        _patch_values({"state": "finished", "tags": "a", "name": "ok"})
    assert [fault.field for fault in refused.value.faults] == ["state", "tags", "version"]


def test_a_run_counts_the_cards_of_its_largest_stage():
    stages = [Stage(name="a", run="x", resources=Resources(cards_per_node=0)), Stage(name="b", run="x")]
    assert most_cards(Spec(stages=stages, resources=Resources(cards_per_node=2, nodes=3))) == 6


# --- what the watch loop does about what it sees ---


def lost(**evidence: Any) -> Observation:
    return Observation("att", Phase.LOST, evidence)


def test_a_dead_supervisor_is_salvaged_whatever_the_lease_says():
    assert decide(attempt(), lost(), Contact.OK) == "salvage"
    assert decide(attempt(state="superseded"), lost(), Contact.OK) == "salvage"


def test_only_silence_beyond_the_lease_makes_an_attempt_gone():
    for contact in (Contact.OK, Contact.SUSPECT, Contact.EXPIRED):
        assert decide(attempt(), lost(folder="missing"), contact) == ""
    assert decide(attempt(), lost(folder="missing"), Contact.GONE) == "gone"
    assert decide(attempt(), Observation("att", Phase.RUNNING), Contact.GONE) == ""


def test_an_attempt_that_nobody_started_is_started():
    assert decide(attempt(state="assigned"), lost(folder="missing"), Contact.OK) == "launch"


def test_one_that_is_gone_already_is_not_declared_so_again():
    assert decide(attempt(lost_us=5), lost(), Contact.GONE) == "salvage"
    assert decide(attempt(lost_us=5), lost(folder="missing"), Contact.GONE) == ""


def test_an_attempt_whose_folder_and_processes_are_gone_has_ended() -> None:
    for contact in (Contact.OK, Contact.GONE):
        assert decide(attempt(lost_us=5), lost(folder="missing", alive=False), contact) == "vanished"
        assert decide(attempt(state="superseded"), lost(folder="missing", alive=False), contact) == "vanished"
        assert decide(attempt(lost_us=5), lost(folder="missing", alive=True), contact) == ""
    assert decide(attempt(), lost(folder="missing", alive=False), Contact.OK) == "vanished"
    assert decide(attempt(state="assigned"), lost(folder="missing", alive=False), Contact.OK) == "launch"


# --- reproduction ---


def test_curves_part_where_their_bits_part():
    same = [(1, (0.5).hex()), (2, (-0.0).hex())]
    assert first_difference("loss", same, list(same)) is None
    apart = first_difference("loss", same, [(1, (0.5).hex()), (2, (0.0).hex())])
    assert apart is not None and (apart.step, apart.before, apart.after) == (2, "-0.0", "0.0")
    longer = first_difference("loss", same[:1], same)
    assert longer is not None and (longer.step, longer.before, longer.after) == (2, "-", "-0.0")


def test_a_pinned_spec_names_digests_only_and_registers_nothing():
    digest = "b3:" + "1" * 64
    spec = Spec(
        run="x",
        data={"c": DataPin(ref="team/stdlib@latest", dataset="stdlib", version=3, digest=digest)},
        from_=FromPin(kind="checkpoint", ref="demo#1@latest", digest=digest, run_id="run_abc", step=5),
        register=RegisterRule(model="m"),
    )
    again = pinned(spec)
    assert again.data["c"].ref == f"team/stdlib@{digest}"
    assert again.from_ is not None and again.from_.ref == f"run_abc@{digest}"
    assert again.register is None
