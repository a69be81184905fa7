"""Write web/src/api/types.ts from the records of trackbed.wire: one source for server, SDK and page.

Run `python web/scripts/wire_types.py` after a change in wire/; `--check` exits 1 when the file is not what it would be.
A field with a default may be left out of the wire, so it is optional here.
"""

import importlib
import pkgutil
import sys
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect as mi

import trackbed.wire

# All but what only MLflow's clients and machines speak.
LEFT_OUT = {"mlflow"}
MODULES = tuple(
    sorted(module.name for module in pkgutil.iter_modules(trackbed.wire.__path__) if module.name not in LEFT_OUT)
)
TARGET = Path(__file__).parents[1] / "src" / "api" / "types.ts"


def ts(t: Any) -> str:
    """Return the TypeScript of one msgspec type."""
    match t:
        case mi.StrType() | mi.BytesType():
            return "string"
        case mi.IntType() | mi.FloatType():
            return "number"
        case mi.BoolType():
            return "boolean"
        case mi.NoneType():
            return "null"
        case mi.AnyType():
            return "unknown"
        case mi.LiteralType():
            return " | ".join(f"'{v}'" if isinstance(v, str) else str(v) for v in t.values)
        case mi.UnionType():
            return " | ".join(dict.fromkeys(ts(part) for part in t.types))
        case mi.ListType():
            inner = ts(t.item_type)
            return f"({inner})[]" if "|" in inner else f"{inner}[]"
        case mi.DictType():
            return f"Record<{ts(t.key_type)}, {ts(t.value_type)}>"
        case mi.TupleType():
            return f"[{', '.join(ts(item) for item in t.item_types)}]"
        case mi.StructType():
            return t.cls.__name__
    raise TypeError(f"no TypeScript for {t!r}")


def record(cls: type[msgspec.Struct]) -> str:
    info = mi.type_info(cls)
    assert isinstance(info, mi.StructType)
    if info.array_like:
        parts = [f"{f.encode_name}{'' if f.required else '?'}: {ts(f.type)}" for f in info.fields]
        return f"export type {cls.__name__} = [{', '.join(parts)}]\n"
    rows = [f"  {f.encode_name}{'' if f.required else '?'}: {ts(f.type)}\n" for f in info.fields]
    return f"export interface {cls.__name__} {{\n{''.join(rows)}}}\n"


def render() -> str:
    parts = ["// Made by web/scripts/wire_types.py from trackbed.wire. Do not edit.\n"]
    for name in MODULES:
        module = importlib.import_module(f"trackbed.wire.{name}")
        for thing in vars(module).values():
            if isinstance(thing, type) and issubclass(thing, msgspec.Struct) and thing.__module__ == module.__name__:
                parts.append(record(thing))
    return "\n".join(parts)


def main() -> int:
    text = render()
    if "--check" in sys.argv:
        return 0 if TARGET.read_text(encoding="utf-8") == text else 1
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
