"""Tables of this room. A result and a version of a template are written once; a newer result of the same key replaces it."""

from sqlalchemy import Column, ForeignKey, Index, Integer, Table, Text, UniqueConstraint, column, table

from trackbed.db import metadata

result = Table(
    "stage_result",
    metadata,
    Column("space_id", Text, primary_key=True),  # a result is never taken from another space
    Column("key", Text, primary_key=True),
    Column("stage", Text, nullable=False),
    Column("parts", Text, nullable=False),  # JSON: what the key was made of
    Column("products", Text, nullable=False),  # JSON: product → tree digest
    Column("outputs", Text, nullable=False, default=""),  # digest of the whole output folder
    Column("run_id", Text, nullable=False),
    Column("run_ref", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("created_us", Integer, nullable=False),
    Index("stage_result_by_stage", "space_id", "stage", "created_us"),
)

choice = Table(
    "stage_choice",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("space_id", Text, nullable=False),
    Column("key", Text, nullable=False, default=""),
    Column("parts", Text, nullable=False, default="{}"),
    Column("state", Text, nullable=False),  # hit | miss | off
    Column("reason", Text, nullable=False),  # Reason as JSON
    Column("from_run", Text, nullable=False, default=""),
    Column("outputs", Text, nullable=False, default=""),
    Index("stage_choice_by_key", "space_id", "key"),
)

# Which run a trial was made for: the run is held until the trial has ended and was looked at (`settled`).
trial = Table(
    "trial",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("trial_id", Text, nullable=False),
    Column("space_id", Text, nullable=False),
    Column("then_queue", Integer, nullable=False, default=0),
    Column("settled", Integer, nullable=False, default=0),
    Column("good", Integer, nullable=False, default=0),
    Column("reason", Text, nullable=False, default=""),  # Reason as JSON: why it is bad
    Column("slices", Text, nullable=False, default="[]"),  # JSON: list of DataSlice
    Column("report", Text, nullable=False, default=""),  # TrialReport as JSON
    Column("created_us", Integer, nullable=False),
    Index("trial_by_trial", "trial_id"),
    Index("trial_by_settled", "settled"),
)

# A stage of a run that another run works on, beside it: independent stages of a graph run at the same time.
child = Table(
    "stage_child",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("child_id", Text, nullable=False),
    Column("space_id", Text, nullable=False),
    Column("state", Text, nullable=False),  # running | done | failed
    Index("stage_child_by_child", "child_id"),
    Index("stage_child_by_state", "state"),
)

# A run that was made from another by other values; the run that it was made from knows nothing of it.
like = Table(
    "run_like",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("of_id", Text, nullable=False),
    Column("space_id", Text, nullable=False),
    Column("kind", Text, nullable=False),  # clone | fork
    Column("changes", Text, nullable=False, default="[]"),  # JSON: list of FieldChange
    Index("run_like_by_of", "of_id"),
)

template = Table(
    "template",
    metadata,
    Column("id", Text, primary_key=True),
    Column("space_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("latest", Integer, nullable=False),  # its row is the lock under which the next number is given
    Column("created_us", Integer, nullable=False),
    UniqueConstraint("space_id", "name"),
)

version = Table(
    "template_version",
    metadata,
    Column("template_id", Text, ForeignKey("template.id"), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("space_id", Text, nullable=False),
    Column("digest", Text, nullable=False),  # of the text
    Column("text", Text, nullable=False),  # as it was added
    Column("document", Text, nullable=False),  # what it says, as JSON
    Column("created_us", Integer, nullable=False),
    Column("created_by", Text, nullable=False),
)

space = table("space", column("id"), column("name"))  # kept by `access`; here only what a name stands for
