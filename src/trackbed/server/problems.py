"""Every failure leaves as an RFC 9457 problem: a stable code and its values, no prose, never a traceback."""

import logging
from typing import Any

import msgspec
from litestar import Request, Response
from litestar.exceptions import (
    HTTPException,
    MethodNotAllowedException,
    NotFoundException,
    ValidationException,
)

from trackbed.base.entropy import new_id
from trackbed.base.errors import BadInput, Fault, Internal, NotFound, TooLarge, TrackbedError
from trackbed.wire.problems import FaultView, Problem

MEDIA = "application/problem+json"
log = logging.getLogger("trackbed.server")


class WrongMethod(BadInput):
    """The path is known, the method is not."""

    http_status = 405


def problem_of(error: TrackbedError) -> Problem:
    """Return what crosses the wire of an error."""
    faults = [FaultView(code=f.code, field=f.field, line=f.line, params=f.params) for f in error.faults]
    return Problem(
        type=f"urn:trackbed:error:{error.code}",
        status=error.http_status,
        code=error.code,
        params=error.params,
        faults=faults,
    )


def headers_of(error: TrackbedError) -> dict[str, str]:
    """Return the headers that belong to an error's status."""
    if error.http_status == 401:
        return {"WWW-Authenticate": 'Bearer realm="trackbed"'}
    if error.http_status == 503:
        return {"Retry-After": "1"}
    return {}


def body_of(error: TrackbedError) -> bytes:
    return msgspec.json.encode(problem_of(error), enc_hook=str)


def answer(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """Return the response of any exception; what we did not foresee gets a log id, and the log gets the rest."""
    told = _told(request, error)
    return Response(body_of(told), status_code=told.http_status, media_type=MEDIA, headers=headers_of(told))


def _told(request: Request[Any, Any, Any], error: Exception) -> TrackbedError:
    if isinstance(error, TrackbedError):
        if error.http_status >= 500:
            log.error("%s %s: %s", request.method, request.url.path, error, exc_info=error.__cause__)
        return error
    if isinstance(error, HTTPException):
        return _of_framework(request, error)
    if isinstance(error, RecursionError):  # of the JSON reader
        return BadInput("request_deep")
    log_id = new_id("log")
    log.error("%s: %s %s failed", log_id, request.method, request.url.path, exc_info=error)
    return Internal("internal", what=log_id)


def _of_framework(request: Request[Any, Any, Any], error: HTTPException) -> TrackbedError:
    if isinstance(error, NotFoundException):
        return NotFound("route_unknown", path=request.url.path)
    if isinstance(error, MethodNotAllowedException):
        return WrongMethod("method_not_allowed", method=request.method, path=request.url.path)
    if error.status_code == 413:
        return TooLarge("body_too_large")
    if isinstance(error, ValidationException):
        extra: Any = error.extra or []
        items: list[Any] = extra if isinstance(extra, list) else [extra]
        return BadInput("request_bad", faults=[_fault(item) for item in items])
    if error.status_code < 500:
        return BadInput("request_bad", faults=[Fault("field_bad", params={"what": error.detail})])
    log_id = new_id("log")
    log.error("%s: %s %s failed", log_id, request.method, request.url.path, exc_info=error)
    return Internal("internal", what=log_id)


def _fault(item: Any) -> Fault:
    if isinstance(item, dict):
        return Fault("field_bad", field=str(item.get("key", "")), params={"what": str(item.get("message", ""))})
    return Fault("field_bad", params={"what": str(item)})
