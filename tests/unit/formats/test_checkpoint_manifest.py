"""The manifest of a checkpoint, without a disk."""

import json

import msgspec
import pytest

from trackbed.base.errors import Damaged, NotYet
from trackbed.formats.checkpoint import Manifest, Part, decode, encode, name_of, step_of


def _manifest(**changes: object) -> Manifest:
    whole = Manifest(
        step=120,
        world_size=2,
        mesh={"shard": 2},
        config="c" * 64,
        layout={"threads": 1},
        state={"consumed": 960},
        parts=[Part(path=f"rank-{rank:05d}.safetensors", rank=rank, size_bytes=7, digest="d" * 64) for rank in (0, 1)],
    )
    return msgspec.structs.replace(whole, **changes)


def test_what_was_written_is_read() -> None:
    assert decode(encode(_manifest()), where="here") == _manifest()


def test_the_bytes_are_canonical() -> None:
    raw = encode(_manifest())
    assert raw == encode(decode(raw, where="here"))
    assert raw.endswith(b"}\n")
    assert list(json.loads(raw)) == sorted(json.loads(raw))


def test_fields_that_a_later_writer_added_are_ignored() -> None:
    grown = json.loads(encode(_manifest())) | {"colour": "blue"}
    assert decode(json.dumps(grown).encode(), where="here") == _manifest()


def test_a_later_version_is_refused_rather_than_misread() -> None:
    with pytest.raises(NotYet):
        decode(encode(_manifest(version=2)), where="here")


@pytest.mark.parametrize("path", ["../rank-0", "/etc/passwd", "a/b", ".hidden", ""])
def test_a_part_that_leads_out_of_the_folder_is_refused(path: str) -> None:
    parts = [Part(path=path, rank=0, size_bytes=1, digest="d" * 64)]
    with pytest.raises(Damaged):
        decode(encode(_manifest(parts=parts, world_size=1)), where="here")


def test_a_missing_part_is_refused() -> None:
    with pytest.raises(Damaged):
        decode(encode(_manifest(world_size=3)), where="here")


@pytest.mark.parametrize("raw", [b"", b"{}", b"[1]", b"\xff", b'{"format": "other"}'])
def test_what_is_no_manifest_is_refused(raw: bytes) -> None:
    with pytest.raises(Damaged):
        decode(raw, where="here")


def test_the_step_is_in_the_name() -> None:
    assert step_of(name_of(120)) == 120
    assert [step_of(name) for name in (".staged-5", "step-5.tmp", "step-", "latest", "step-05x")] == [None] * 5
