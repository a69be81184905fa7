"""Where Trackbed keeps its things on this machine."""

import os
from pathlib import Path


def home() -> Path:
    """Return `$TRACKBED_HOME`, or `~/.trackbed`. Never read inside a job."""
    return Path(os.environ.get("TRACKBED_HOME") or Path.home() / ".trackbed").expanduser().absolute()
