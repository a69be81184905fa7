"""Lets the tests beside it import `server_process`, as importlib mode puts no folder on the path."""

import importlib.util
import sys
from pathlib import Path

_spec = importlib.util.spec_from_file_location("server_process", Path(__file__).with_name("server_process.py"))
assert _spec is not None
assert _spec.loader is not None
_module = importlib.util.module_from_spec(_spec)
sys.modules["server_process"] = _module
_spec.loader.exec_module(_module)
server = _module.server
own_server = _module.own_server
