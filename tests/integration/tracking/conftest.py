"""A run on a real database of each kind, and frames for it."""

import importlib.util
import sys
from pathlib import Path

_spec = importlib.util.spec_from_file_location("tracking_bed", Path(__file__).with_name("tracking_bed.py"))
assert _spec is not None
assert _spec.loader is not None
_module = importlib.util.module_from_spec(_spec)
sys.modules["tracking_bed"] = _module
_spec.loader.exec_module(_module)
bed = _module.bed
