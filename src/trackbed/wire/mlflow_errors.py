"""What went wrong, as MLflow's clients read it: `{"error_code": …, "message": …}` with MLflow's codes and statuses."""

import msgspec

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


def code_of(error: TrackbedError) -> tuple[str, int]:
    """Return MLflow's code and the HTTP status that goes with it."""
    if error.code in _CODES:
        return _CODES[error.code]
    family = next(((code, status) for kind, code, status in _FAMILIES if isinstance(error, kind)), None)
    return family or ("INTERNAL_ERROR", 500)


def body_of(error: TrackbedError) -> tuple[bytes, int]:
    """Return the JSON of an error and its HTTP status."""
    code, status = code_of(error)
    return msgspec.json.encode({"error_code": code, "message": error.text("en")}), status
