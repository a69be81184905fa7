"""Give Chinese texts Chinese punctuation: `python scripts/zh.py FILE.json …` (values of catalogues). `make format` runs it.

What stands between Latin letters, in `code spans`, in URLs and in {holes} stays as it is.
"""

import json
import re
import sys
from pathlib import Path

WIDE = dict(zip(",;:?!()", "\uff0c\uff1b\uff1a\uff1f\uff01\uff08\uff09", strict=True))
HELD = re.compile(
    r"`[^`]*`|https?://[^\s\u3000-\uffff]+|\{path\}:\{line\}|[A-Za-z_.]+\([^()]*\)|\( \)|[a-z_]+:(?=[,\uff0c])"
)
VALUE = re.compile(r'(?m)^(\s*"[^"\n]+":\s*)("(?:[^"\\]|\\.)*")')


def chinese(text: str) -> bool:
    return any("\u3001" <= char <= "\u9fff" or char in WIDE.values() for char in text)


def mend(text: str) -> str:
    """`规格无误(3 张卡),可提交` → the same with full-width marks."""
    if not chinese(text):
        return text
    held: list[str] = []

    def hold(found: re.Match[str]) -> str:
        held.append(found[0])
        return f"{{\ue000{len(held) - 1}}}"

    chars = list(HELD.sub(hold, text))
    opened: list[int] = []
    for at, char in enumerate(chars):
        if char == "(":
            opened.append(at)
        elif char == ")" and opened:
            first = opened.pop()
            around = "".join([*chars[first - 1 : first], *chars[first:at], *chars[at + 1 : at + 2]])
            if chinese(around):
                chars[first], chars[at] = WIDE["("], WIDE[")"]
    for at, char in enumerate(chars):
        before, after = "".join(chars[max(at - 1, 0) : at]), "".join(chars[at + 1 : at + 2])
        if char in ",;:?!" and (chinese(before) or (before == "}" and after in ("{", "")) or chinese(after)):
            chars[at] = WIDE[char]
            if after == " ":
                chars[at + 1] = ""
    joined = "".join(chars).replace(f" {WIDE['(']}", WIDE["("]).replace(f"{WIDE[')']} ", WIDE[")"])
    return re.sub("\\{\ue000(\\d+)\\}", lambda found: held[int(found[1])], joined)


def main() -> None:
    for path in map(Path, sys.argv[1:]):
        text = path.read_text(encoding="utf-8")
        new = VALUE.sub(lambda found: found[1] + json.dumps(mend(json.loads(found[2])), ensure_ascii=False), text)
        if new != text:
            path.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
