"""A run again on another server, from its record alone: what it was made of is carried there by digest, then it is submitted."""

import struct
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from trackbed.base.entropy import new_id
from trackbed.base.errors import Damaged, NotYet
from trackbed.base.ids import Digest
from trackbed.client.api import Client
from trackbed.client.connection import part
from trackbed.client.pull import pull
from trackbed.client.push import push
from trackbed.storage.scan import Scan, scan
from trackbed.wire.runs import ReproductionVerdict, SubmitReply, SubmitRequest, Unequal
from trackbed.wire.spec import DataPin


def reproduce_on(source: Client, target: Client, run: str) -> SubmitReply:
    """Submit a run of one server on another. Data is found there, or added, under its name; digests are the same everywhere.

    Raises:
        NotYet: the run begins from a model or checkpoint.
        Damaged: `carried_otherwise`: what arrived is not what was pinned.
    """
    request = source.connection.get(f"/api/v1/runs/{part(run)}/reproduction", SubmitRequest)
    spec = request.spec
    if spec.from_ is not None:
        raise NotYet("not_yet", what="reproduce --on with from:")
    with TemporaryDirectory(prefix="trackbed-carry-") as scratch:
        if request.tree is not None and request.tree.digest:
            push(target.connection, _fetched(source, request.tree.digest, Path(scratch) / "tree"))
        data = {
            name: _carried(source, target, pin, Path(scratch) / f"data-{at}")
            for at, (name, pin) in enumerate(spec.data.items())
        }
    # A template is of the other server; what it gave stands in the spec.
    spec = msgspec.structs.replace(spec, data=data, template="", space="default")
    request = msgspec.structs.replace(request, spec=spec, reproduces="")
    return target.connection.post("/api/v1/runs", SubmitReply, request, key=new_id("idm"))


def _carried(source: Client, target: Client, pin: DataPin, place: Path) -> DataPin:
    name = (pin.dataset or pin.ref.partition("@")[0]).rpartition("/")[2]
    target.data.commit(name, _fetched(source, pin.digest, place), kind=pin.kind)
    return DataPin(ref=f"{name}@{pin.digest}")


def _fetched(source: Client, digest: str, place: Path) -> Scan:
    pull(source.connection, Digest(digest), place)
    found = scan(place)
    if found.info.digest != digest:
        raise Damaged("carried_otherwise", digest=digest, found=found.info.digest)
    return found


def compared(source: Client, first: str, target: Client, second: str) -> ReproductionVerdict:
    """Compare two runs of two servers: declared curves bit for bit, products and files of the output by digest."""
    one, other = source.run(first), target.run(second)
    keys = [info.key for info in source.keys(one.run.id, limit=10_000) if info.definition.get("deterministic")]
    unequal: list[Unequal] = []
    for key in keys:
        if _bits(source, one.run.id, key) != _bits(target, other.run.id, key):
            unequal.append(Unequal(what="metric", name=key))
    products = [{f"{s.name}.{name}": digest for s in each.stages for name, digest in s.products.items()} for each in (one, other)]  # fmt: skip
    outputs = [{file.path: file.file_digest for file in each.artifacts} for each in (one, other)]
    for what, (before, after) in (("product", products), ("output", outputs)):
        unequal += [
            Unequal(what=what, name=name, before=before.get(name, ""), after=after.get(name, ""))
            for name in sorted({**before, **after})
            if before.get(name) != after.get(name)
        ]
    declared = bool(keys) or bool(products[0])
    against = [each for each in unequal if each.what != "output" or not declared]
    something = declared or bool(outputs[0])
    return ReproductionVerdict(
        run=other.run.id, reproduces=one.run.id, equal=something and not against, keys=keys, unequal=unequal,
        verdict="nothing" if not something else "differs" if against else "equal", products=len(products[0]),
        outputs=len(outputs[0]), finished=one.run.state == other.run.state == "finished",
        nondeterminism=sorted({*one.nondeterminism, *other.nondeterminism}),
    )  # fmt: skip


def _bits(client: Client, run: str, key: str) -> list[tuple[int, bytes]]:
    return [(point.step, struct.pack("<d", point.value)) for point in client.history(run, key)]
