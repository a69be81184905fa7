"""Where programs of the platform write what they do: one line a fact, key=value, secrets masked at the sink."""

import logging
import re
import sys

_SECRET = re.compile(r"\b(tb[a-z]{1,3}_[0-9a-z]{4})[0-9a-z]{16,}")


class _Mask(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return mask(super().format(record))


def mask(text: str) -> str:
    """Blank our own bearer secrets (`tbp_…`, `tba_…`, `tbl_…`, `tbr_…`) in a line. Best effort for anything else."""
    return _SECRET.sub(r"\1…", text)


def setup(name: str, *, level: str = "INFO") -> logging.Logger:
    """Send the log of this process to stderr and return the logger called `name`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Mask("%(asctime)s.%(msecs)03d %(levelname)s %(name)s %(message)s", "%Y-%m-%dT%H:%M:%S"))
    root = logging.getLogger("trackbed")
    root.handlers[:] = [handler]
    root.setLevel(level)
    root.propagate = False
    return logging.getLogger(f"trackbed.{name}")
