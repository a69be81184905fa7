"""MLflow's REST surface: an unmodified `mlflow` client logs, searches, reads, uploads, registers and loads.

    codec ◄─ routing ◄─ system, experiments, runs, recording, histories, artifacts, logged_models, registry, versions
    errors       what went wrong, as MLflow's clients read it
    filters ◄─ conditions      MLflow's search language as conditions of the database
    tables ◄─ tags, places     what MLflow knows and we have no column for

An experiment is a project, a run a run, a registered model a model. What MLflow keeps besides stands in tables of its own
beside the same rows; points, params and files go the way of every other frame and artifact.
Page: docs/reference/mlflow.md.
"""
