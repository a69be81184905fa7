"""Token shards and the corpus on a real disk; no torch."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trackbed.base.errors import BadInput, Damaged, Unavailable
from trackbed.engine.data.corpus import list_files, prepare
from trackbed.engine.model.shape import END_OF_DOCUMENT
from trackbed.formats.tokens import open_shard, write_shard

KEPT = Path(__file__).parent / "kept.tokens"


@given(
    documents=st.lists(st.lists(st.integers(0, 299), max_size=30), max_size=8), vocabulary=st.sampled_from([300, 65536])
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_documents_are_read_as_written(tmp_path: Path, documents: list[list[int]], vocabulary: int) -> None:
    write_shard(tmp_path / "a.tokens", (np.array(d, dtype=np.int64) for d in documents), vocabulary=vocabulary)
    shard = open_shard(tmp_path / "a.tokens", verify=True)
    read = [shard.tokens[int(shard.starts[i]) : int(shard.starts[i + 1])].tolist() for i in range(shard.documents)]
    assert read == documents
    assert shard.vocabulary == vocabulary


def test_small_vocabularies_take_one_byte_a_token(tmp_path: Path) -> None:
    write_shard(tmp_path / "a.tokens", [np.arange(200)], vocabulary=256)
    shard = open_shard(tmp_path / "a.tokens", verify=True)
    assert shard.tokens.dtype.itemsize == 1
    assert shard.tokens.tolist() == list(range(200))


def test_a_kept_sample_of_version_1_is_still_read_and_still_written(tmp_path: Path) -> None:
    documents = [np.array([104, 105, 256]), np.array([256]), np.array([0, 255, 256])]
    digest = write_shard(tmp_path / "now.tokens", documents, vocabulary=257)
    assert (tmp_path / "now.tokens").read_bytes() == KEPT.read_bytes()
    shard = open_shard(KEPT, verify=True)
    assert (shard.digest, shard.documents, shard.tokens.tolist()) == (digest, 3, [104, 105, 256, 256, 0, 255, 256])


@pytest.mark.parametrize("damage", ["short", "long", "flipped", "magic", "empty"])
def test_a_damaged_shard_is_refused(tmp_path: Path, damage: str) -> None:
    raw = bytearray(KEPT.read_bytes())
    if damage == "flipped":
        raw[70] ^= 1
    elif damage == "magic":
        raw[0] ^= 1
    changed = {"short": raw[:-1], "long": raw + b"\0", "empty": b""}.get(damage, raw)
    (tmp_path / "bad.tokens").write_bytes(bytes(changed))
    with pytest.raises(Damaged):
        open_shard(tmp_path / "bad.tokens", verify=True)


def _folder(root: Path) -> Path:
    (root / "sub").mkdir(parents=True)
    for number in range(30):
        (root / f"m{number}.py").write_bytes(b"x = %d\n" % number)
    (root / "sub" / "latin.py").write_bytes(b"# caf\xe9\n\xff\xfe")
    (root / os.fsdecode(b"name-\xff.py")).write_bytes(b"odd name\n")
    (root / "empty.py").write_bytes(b"")
    (root / "link.py").symlink_to("m0.py")
    return root


def test_every_byte_of_every_file_is_a_token_once(tmp_path: Path) -> None:
    source = _folder(tmp_path / "source")
    corpus = prepare(source, tmp_path, share=0.1, builder=True)
    together = np.concatenate([corpus.train.tokens, corpus.held_out.tokens])
    contents = [(source / os.fsdecode(path)).read_bytes() for path in list_files(source)]
    assert corpus.files == 33
    assert int((together == END_OF_DOCUMENT).sum()) == 33
    assert sorted(together[together < 256].tolist()) == sorted(b"".join(contents))
    assert corpus.size_bytes == sum(len(content) for content in contents)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_the_same_files_give_the_same_bytes_anywhere(tmp_path: Path) -> None:
    corpora = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        corpora.append(prepare(_folder(tmp_path / name / "source"), tmp_path / name, share=0.1, builder=True))
    assert corpora[0].digest == corpora[1].digest


def test_another_corpus_in_the_same_scratch_is_not_mistaken(tmp_path: Path) -> None:
    source = _folder(tmp_path / "source")
    before = prepare(source, tmp_path, share=0.1, builder=True)
    (source / "more.py").write_bytes(b"more\n")
    assert prepare(source, tmp_path, share=0.1, builder=True).digest != before.digest


def test_a_rank_whose_builder_never_comes_says_so(tmp_path: Path) -> None:
    with pytest.raises(Unavailable):
        prepare(_folder(tmp_path / "source"), tmp_path, share=0.1, builder=False, wait_s=0.1)


def test_a_missing_corpus_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        prepare(tmp_path / "nowhere", tmp_path, share=0.1, builder=True)
