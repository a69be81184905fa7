"""Environments as rows: one for each digest, written once. Who may read one is decided by the run that it belongs to."""

import msgspec
from sqlalchemy import Column, Integer, Table, Text, select

from trackbed.base.errors import NotFound
from trackbed.db import ReadTx, Tx, metadata, upsert
from trackbed.wire.runs import EnvironmentRecord

environment = Table(
    "environment",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("record", Text, nullable=False),  # EnvironmentRecord, without its executable
    Column("created_us", Integer, nullable=False),
)


def save_environment(tx: Tx, record: EnvironmentRecord) -> str:
    """Keep a record under its digest, once; return the digest. The caller has checked the digest."""
    plain = msgspec.structs.replace(record, executable="")
    values = {"digest": record.digest, "record": msgspec.json.encode(plain).decode(), "created_us": tx.now_us}
    tx.execute(upsert(environment, values, key=["digest"]))
    return record.digest


def load_environment(tx: ReadTx, digest: str) -> EnvironmentRecord:
    """Return a record by its digest.

    Raises:
        NotFound: `sources_environment_missing`.
    """
    row = tx.one(select(environment.c.record).where(environment.c.digest == digest))
    if row is None:
        raise NotFound("sources_environment_missing", digest=digest)
    return msgspec.json.decode(row.record, type=EnvironmentRecord)
