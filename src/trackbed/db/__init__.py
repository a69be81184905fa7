"""One unit of work at a time: Tx with emit, the scope clause, the writer lane, readers, the journal.

Front door: `Database.open(url)`, then `write(fn)` and `read(fn)`; a function gets a `Tx` or a `ReadTx` and does everything
through it. Rooms put their tables on `metadata`. `Integer` is 64 bits wide on both databases, JSON is text, a bool is 0 or 1.

    database ─► writer (sqlite lane | postgres pool) ─► tx ─► schema
"""

from trackbed.db.database import Database
from trackbed.db.schema import metadata
from trackbed.db.tx import ReadTx, Tx, scope_clause, upsert

__all__ = ["Database", "ReadTx", "Tx", "metadata", "scope_clause", "upsert"]
