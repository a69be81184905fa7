"""What MLflow keeps and our rooms have no column for, beside the same projects, runs and models."""

from sqlalchemy import Column, Float, Index, Integer, Table, Text, UniqueConstraint

from trackbed.db import metadata

# A project as an experiment. Only those that MLflow made or changed have a row.
experiment = Table(
    "mlflow_experiment",
    metadata,
    Column("project_id", Text, primary_key=True),
    Column("space_id", Text, nullable=False),
    Column("name", Text, nullable=False),  # as given: MLflow's names may hold blanks and slashes
    Column("deleted_us", Integer, nullable=False, default=0),
    Column("updated_us", Integer, nullable=False),
    UniqueConstraint("space_id", "name", name="mlflow_experiment_name"),
)

# `status` is what a client said after the run had ended; our own state stays where it is.
run_state = Table(
    "mlflow_run",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("deleted_us", Integer, nullable=False, default=0),
    Column("status", Text, nullable=False, default=""),
)

# Tags with values, of everything that has them. `owner` is an id; of a model version `mod_…/3`.
tag = Table(
    "mlflow_tag",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("owner", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

# The latest point of a metric by MLflow's rule: the greatest (step, time, value), NaN counting as 0.
latest = Table(
    "mlflow_latest",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("step", Integer, nullable=False),
    Column("ts_ms", Integer, nullable=False),
    Column("value", Float, nullable=False),
    Column("is_nan", Integer, nullable=False),
)

# What a run read and made: datasets, models in, models out. `ref` tells links of a kind apart.
link = Table(
    "mlflow_run_link",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("kind", Text, primary_key=True),  # dataset | model_in | model_out
    Column("ref", Text, primary_key=True),
    Column("name", Text, nullable=False, default=""),
    Column("digest", Text, nullable=False, default=""),
    Column("context", Text, nullable=False, default=""),
    Column("document", Text, nullable=False),  # JSON, as MLflow answers it
    Column("created_us", Integer, nullable=False),
)

logged_model = Table(
    "mlflow_logged_model",
    metadata,
    Column("id", Text, primary_key=True),
    Column("space_id", Text, nullable=False),
    Column("project_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("model_type", Text, nullable=False, default=""),
    Column("status", Text, nullable=False),
    Column("source_run_id", Text, nullable=False, default=""),
    Column("created_us", Integer, nullable=False),
    Column("updated_us", Integer, nullable=False),
    Column("deleted_us", Integer, nullable=False, default=0),
    Index("mlflow_logged_model_by_project", "project_id", "created_us"),
)

logged_metric = Table(
    "mlflow_logged_metric",
    metadata,
    Column("model_id", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("run_id", Text, primary_key=True),
    Column("step", Integer, primary_key=True, autoincrement=False),
    Column("ts_ms", Integer, primary_key=True, autoincrement=False),
    Column("dataset_name", Text, primary_key=True),
    Column("dataset_digest", Text, primary_key=True),
    Column("value", Float, nullable=False),
    Column("is_nan", Integer, nullable=False),
)

logged_file = Table(
    "mlflow_logged_file",
    metadata,
    Column("model_id", Text, primary_key=True),
    Column("path", Text, primary_key=True),
    Column("size_bytes", Integer, nullable=False),
    Column("file_digest", Text, nullable=False),
    Column("created_us", Integer, nullable=False),
)

# A model as a registered model; a version as a model version. Deleted ones are hidden here and stay in the registry.
registered = Table(
    "mlflow_registered_model",
    metadata,
    Column("model_id", Text, primary_key=True),
    Column("space_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("description", Text, nullable=False, default=""),
    Column("created_us", Integer, nullable=False),
    Column("updated_us", Integer, nullable=False),
    Column("deleted_us", Integer, nullable=False, default=0),
    UniqueConstraint("space_id", "name", name="mlflow_registered_model_name"),
)

version_facts = Table(
    "mlflow_model_version",
    metadata,
    Column("model_id", Text, primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("source", Text, nullable=False, default=""),
    Column("run_link", Text, nullable=False, default=""),
    Column("logged_model_id", Text, nullable=False, default=""),
    Column("description", Text, nullable=False, default=""),
    Column("stage", Text, nullable=False, default="None"),
    Column("updated_us", Integer, nullable=False),
    Column("deleted_us", Integer, nullable=False, default=0),
)
