"""What went wrong, to MLflow's clients in their own form; everybody else is answered a problem of ours."""

from typing import Any

from litestar import Request, Response

from trackbed.base.errors import NotYet
from trackbed.server import problems
from trackbed.wire.mlflow_errors import body_of

_ROOTS = ("/api/2.0/mlflow", "/api/3.0/mlflow", "/ajax-api/")  # also /api/2.0/mlflow-artifacts
# Parts of MLflow that are known and not built: named, so that nobody looks for a fault of their own.
_NOT_BUILT = (
    "traces", "assessments", "scorers", "datasets", "gateway", "prompt-optimization", "label-schemas", "review-queues",
    "issues", "webhooks", "workspaces", "presigned", "mpu", "get-trace-artifact", "create-promptlab-run",
)  # fmt: skip


def is_ours(path: str) -> bool:
    """Tell whether a path belongs to MLflow's surface."""
    return path.startswith(_ROOTS) or path.startswith("/v1/traces") or path == "/version"


def answer(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """Return the response of any exception, to MLflow's clients in their own form."""
    if not is_ours(request.url.path):
        return problems.answer(request, error)
    told = problems.told(request, error)
    if told.code in ("route_unknown", "method_not_allowed"):
        known = next((part for part in _NOT_BUILT if part in request.url.path), "")
        if known or request.url.path.startswith("/v1/traces"):
            told = NotYet("mlflow_not_built", part=known or "traces")
    body, status = body_of(told)
    return Response(body, status_code=status, media_type="application/json", headers=problems.headers_of(told))
