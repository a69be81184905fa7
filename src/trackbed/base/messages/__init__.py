"""Sentences for codes, English and Chinese. One JSON file a room and language: `{code: "what happened. The way out."}`.

Errors, wait reasons, causes, events and states share this source; the web build imports the same files.
"""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

LANGUAGES = ("en", "zh")
_HOLE = re.compile(r"\{([a-z_0-9]+)\}")
_COUNTED = re.compile(r"\b(\d+) (\w+)\(s\)")


@cache
def catalogue(lang: str) -> dict[str, str]:
    """Return all sentences of a language; a code that stands in two files is a fault of ours."""
    folder = Path(__file__).parent / lang
    merged: dict[str, str] = {}
    for path in sorted(folder.glob("*.json")):
        for code, text in json.loads(path.read_text(encoding="utf-8")).items():
            if code in merged:
                raise ValueError(f"{code} stands twice in the {lang} catalogue ({path.name})")
            merged[code] = text
    return merged


def render(code: str, params: dict[str, Any], lang: str = "en") -> str:
    """Return the sentence of a code with its values filled in.

    `3 card(s)` is told as `3 cards`, `1 card(s)` as `1 card`.
    An unknown code (from a newer server, say) is shown with its values rather than hidden.
    """
    text = catalogue(lang if lang in LANGUAGES else "en").get(code)
    if text is None:
        return code + (f" {json.dumps(params, ensure_ascii=False, default=str)}" if params else "")
    filled = _HOLE.sub(lambda hole: str(params.get(hole.group(1), hole.group(0))), text)
    return _COUNTED.sub(lambda found: f"{found[1]} {found[2]}{'' if found[1] == '1' else 's'}", filled)
