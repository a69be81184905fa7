"""What went wrong, as MLflow's clients read it: `{"error_code": …, "message": …}` with MLflow's codes and statuses."""

from typing import Any

import msgspec
from litestar import Request, Response

from trackbed.base.errors import (
    BadInput,
    Conflict,
    Denied,
    NotFound,
    NotYet,
    StorageFull,
    TooLarge,
    TrackbedError,
    Unauthenticated,
    Unavailable,
)
from trackbed.server import problems

_ROOTS = ("/api/2.0/mlflow", "/api/3.0/mlflow", "/ajax-api/")  # also /api/2.0/mlflow-artifacts
_FAMILIES: tuple[tuple[type[TrackbedError], str, int], ...] = (
    (Unauthenticated, "UNAUTHENTICATED", 401),
    (Denied, "PERMISSION_DENIED", 403),
    (NotFound, "RESOURCE_DOES_NOT_EXIST", 404),
    (Conflict, "RESOURCE_CONFLICT", 409),
    (TooLarge, "BAD_REQUEST", 413),
    (NotYet, "NOT_IMPLEMENTED", 501),
    (Unavailable, "TEMPORARILY_UNAVAILABLE", 503),
    (StorageFull, "TEMPORARILY_UNAVAILABLE", 503),  # the client waits and tries again
    (BadInput, "INVALID_PARAMETER_VALUE", 400),
)
_CODES = {
    "route_unknown": ("ENDPOINT_NOT_FOUND", 404),
    "mlflow_not_built": ("NOT_IMPLEMENTED", 501),
    "method_not_allowed": ("ENDPOINT_NOT_FOUND", 405),
    "mlflow_exists": ("RESOURCE_ALREADY_EXISTS", 400),
    "project_exists": ("RESOURCE_ALREADY_EXISTS", 400),
}
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
    code, status = code_of(told)
    body = msgspec.json.encode({"error_code": code, "message": told.text("en")})
    return Response(body, status_code=status, media_type="application/json", headers=problems.headers_of(told))


def code_of(error: TrackbedError) -> tuple[str, int]:
    """Return MLflow's code and the HTTP status that goes with it."""
    if error.code in _CODES:
        return _CODES[error.code]
    family = next(((code, status) for kind, code, status in _FAMILIES if isinstance(error, kind)), None)
    return family or ("INTERNAL_ERROR", 500)
