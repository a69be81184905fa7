"""Bundles: what was put in comes out, and nothing that was not put in by us is unpacked."""

import io
import zipfile
from pathlib import Path

import msgspec
import pytest
from blake3 import blake3

from trackbed.base.errors import BadInput, Damaged, TooLarge, TrackbedError
from trackbed.formats import bundle
from trackbed.formats.bundle import Manifest, Member, Reader, Writer

SAMPLE = Path(__file__).with_name("samples") / "bundle-1.tbx"
RUN = "run_7f3kq2m4x8w1c5v9"
RECORD = f"runs/{RUN}/run.json"
BLOB = b"of the run"
BLOB_NAME = f"blobs/{blake3(BLOB).hexdigest()}"


def made() -> bytes:
    file = io.BytesIO()
    writer = Writer(file)
    writer.add(RECORD, [b"{", b"}"])
    writer.add(BLOB_NAME, [BLOB])
    writer.close(Manifest(made_us=1, origin={"installation": "ins_a"}, runs={RUN: "demo#1"}))
    return file.getvalue()


def forged(files: dict[str, bytes], *, compress: int = zipfile.ZIP_DEFLATED, **manifest: object) -> io.BytesIO:
    """A zip that somebody else made, with a manifest that agrees with it."""
    file = io.BytesIO()
    named = {name: Member(size=len(data), blake3=blake3(data).hexdigest()) for name, data in files.items()}
    head = {"format": bundle.FORMAT, "version": 1, "runs": {}, "members": msgspec.to_builtins(named), **manifest}
    with zipfile.ZipFile(file, "w", compress) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
        archive.writestr(bundle.MANIFEST, msgspec.json.encode(head))
    file.seek(0)
    return file


def code_of(file: io.BytesIO, **limits: int) -> str:
    with pytest.raises(TrackbedError) as refused:
        Reader(file, **limits).verify()
    assert refused.value.text("en") and refused.value.text("zh")
    return refused.value.code


def test_what_was_put_in_comes_out_checked() -> None:
    reader = Reader(io.BytesIO(made()))
    reader.verify()
    assert (reader.read(RECORD), reader.read(BLOB_NAME)) == (b"{}", BLOB)
    assert reader.manifest.runs == {RUN: "demo#1"}
    assert reader.digest == blake3(zipfile.ZipFile(io.BytesIO(made())).read(bundle.MANIFEST)).hexdigest()


def test_the_same_runs_make_the_same_bytes() -> None:
    assert made() == made()


def test_the_kept_sample_reads_for_ever() -> None:
    with SAMPLE.open("rb") as file:
        reader = Reader(file)
        reader.verify()
        assert reader.digest == "81c32ef2cd6e476167fa5fbbb113ca500a28bd76ba11196378bfe9f67d68f16b"
        assert reader.manifest.origin == {"installation": "ins_a"}


def test_a_flipped_byte_anywhere_is_found() -> None:
    whole = made()
    for at in range(0, len(whole), 7):
        broken = bytearray(whole)
        broken[at] ^= 0x55
        try:
            reader = Reader(io.BytesIO(bytes(broken)))
            reader.verify()
        except (BadInput, Damaged, TooLarge):
            continue
        # a byte that nobody reads: dates and attributes of members, say. What is read is what was put in.
        assert (reader.read(RECORD), reader.read(BLOB_NAME)) == (b"{}", BLOB)


def test_a_file_that_was_cut_is_no_bundle() -> None:
    whole = made()
    for size in (0, 10, len(whole) // 2, len(whole) - 1):
        assert code_of(io.BytesIO(whole[:size])) == "bundle_not_one"


@pytest.mark.parametrize(
    "name",
    ["../x", "/etc/passwd", "runs/../../x", "a\\b", "runs/run_a/run.json", f"runs/{RUN}/other", "blobs/xy", "x\n"],
)
def test_a_member_of_another_name_is_refused_and_nothing_is_unpacked(name: str) -> None:
    assert code_of(forged({name: b"x"})) == "bundle_path"


def test_what_unpacks_to_more_than_it_should_is_refused() -> None:
    assert code_of(forged({BLOB_NAME: BLOB}), most_bytes=5) == "bundle_large"
    bomb = b"\0" * (32 * 2**20)
    assert code_of(forged({f"blobs/{blake3(bomb).hexdigest()}": bomb})) == "bundle_large"


def test_a_manifest_that_does_not_agree_is_damage() -> None:
    assert code_of(forged({BLOB_NAME: b"another"})) == "bundle_damaged"
    assert code_of(forged({RECORD: b"{}"}, members={})) == "bundle_damaged"
    assert code_of(forged({}, runs={RUN: "demo#1"})) == "bundle_damaged"
    wrong = {RECORD: {"size": 2, "blake3": "0" * 64}}
    assert code_of(forged({RECORD: b"{}"}, members=wrong)) == "bundle_damaged"


def test_another_version_and_another_zip_are_told_apart() -> None:
    assert code_of(forged({}, version=2)) == "bundle_version"
    assert code_of(forged({}, format="other")) == "bundle_not_one"
    plain = io.BytesIO()
    with zipfile.ZipFile(plain, "w"):
        pass
    plain.seek(0)
    assert code_of(plain) == "bundle_not_one"


def test_an_odd_packing_is_refused() -> None:
    assert code_of(forged({RECORD: b"{}"}, compress=zipfile.ZIP_BZIP2)) == "bundle_odd"
