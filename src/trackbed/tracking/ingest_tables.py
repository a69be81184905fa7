"""Tables of what ranks say: frames as they came, how far each client is, and what reads and searches need at once.

Frames and lines are kept in the order in which they became durable: `pos` counts up in each run, under the row lock of its
`tail`. So a reader who knows everything up to a `pos` asks for what lies behind it and misses nothing, on both databases.
"""

from sqlalchemy import Column, Float, Index, Integer, LargeBinary, Table, Text

from trackbed.db import metadata

tail = Table(
    "run_tail",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("frames", Integer, nullable=False, default=0),  # last pos of frame
    Column("lines", Integer, nullable=False, default=0),  # last pos of log_line
    Column("points", Integer, nullable=False, default=0),
    Column("last_step", Integer, nullable=True),
)

# For ever: a repeated (client, seq) is dropped whenever it comes. Keyed by run too, so that nobody burns another's id.
watermark = Table(
    "watermark",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("client", Text, primary_key=True),
    Column("seq", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("rank", Integer, nullable=False),
    Column("updated_us", Integer, nullable=False),
)

# Metrics only; what other kinds say stands in tables of its own, exactly.
frame = Table(
    "frame",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("pos", Integer, primary_key=True, autoincrement=False),
    Column("attempt", Integer, nullable=False),
    Column("incarnation", Integer, nullable=False),
    Column("rank", Integer, nullable=False),
    Column("client", Text, nullable=False),
    Column("seq", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("n", Integer, nullable=False),
    Column("first_step", Integer, nullable=False),
    Column("last_step", Integer, nullable=False),
    Column("bytes", LargeBinary, nullable=False),  # the frame, docs/formats/spool.md
    Index("frame_by_step", "run_id", "last_step"),
)

# Points that moved from `frame` into objects of the store (docs/formats/metrics.md). Rows of a run follow each other without
# a hole: positions up to the greatest `last_pos` are sealed, and a frame that is still there below it is not read any more.
seal = Table(
    "metric_seal",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("first_pos", Integer, primary_key=True, autoincrement=False),
    Column("last_pos", Integer, nullable=False),
    Column("digest", Text, nullable=False),
    Column("size_bytes", Integer, nullable=False),
    Column("points", Integer, nullable=False),
    Column("low_step", Integer, nullable=False),
    Column("high_step", Integer, nullable=False),
    Column("created_us", Integer, nullable=False),
)

# What stands beside a curve and what searches ask for: over counted points, one per step. `last` is NULL where it is NaN.
metric = Table(
    "metric",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("rank", Integer, primary_key=True, autoincrement=False),
    Column("last", Float, nullable=True),
    Column("min", Float, nullable=True),
    Column("max", Float, nullable=True),
    Column("last_step", Integer, nullable=False),
    Column("state", LargeBinary, nullable=False),  # metrics_state.State, exact
    # by run: filters, orders and groups walk it beside the index of the runs table, both in the order of ids
    Index("metric_by_key", "key", "run_id", "rank", "last", "min", "max"),
    info={"outgrown": ("metric_by_value",)},
)

definition = Table(
    "metric_definition",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("document", Text, nullable=False),
)

param = Table(
    "param",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),  # JSON; what is not finite as {"$float": "NaN"}
    Column("number", Float, nullable=True),  # of numbers, for searches; NULL for NaN
    # values may be long, which PostgreSQL refuses in an index
    Index("param_by_name", "name", "run_id", "number").ddl_if(dialect="postgresql"),
    Index("param_by_name_value", "name", "run_id", "number", "value").ddl_if(dialect="sqlite"),
    info={"outgrown": ("param_by_number",)},
)

line = Table(
    "log_line",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("pos", Integer, primary_key=True, autoincrement=False),
    Column("time_us", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("rank", Integer, nullable=False),
    Column("stream", Text, nullable=False),
    Column("level", Integer, nullable=False),  # logs.LEVELS
    Column("data", LargeBinary, nullable=False),
    Index("log_line_by_time", "run_id", "time_us", "attempt", "rank", "pos"),
)

artifact = Table(
    "artifact",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("path", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("size_bytes", Integer, nullable=False),
    Column("file_digest", Text, nullable=False),
    Column("created_us", Integer, nullable=False),
    Index("artifact_by_digest", "file_digest"),
)

# What `run.save` and its kin said a file is, before the file itself was archived.
file_kind = Table(
    "artifact_kind",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("path", Text, primary_key=True),
    Column("kind", Text, nullable=False),
)
