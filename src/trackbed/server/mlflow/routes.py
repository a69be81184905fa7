"""Every route of this surface."""

from typing import Any

from trackbed.server.mlflow import (
    artifacts,
    experiments,
    histories,
    logged_models,
    model_versions,
    recording,
    registered_models,
    run_search,
    runs,
    system,
)

routes: list[Any] = [
    handler
    for module in (
        system, experiments, runs, run_search, recording, histories, artifacts, logged_models, registered_models,
        model_versions,
    )
    for handler in module.routes
]  # fmt: skip
