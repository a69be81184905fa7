"""One verb of our store in a process of its own: `add FOLDER`, `checkout DIGEST TARGET`, `status FOLDER`. Prints JSON."""

import argparse
import json
import time
from pathlib import Path

from trackbed.storage.scan import scan
from trackbed.storage.seen import Seen

KEY = bytes(range(32))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("verb", choices=["add", "checkout", "status", "start"])
    parser.add_argument("store")
    parser.add_argument("args", nargs="*")
    parser.add_argument("--level", type=int, default=2)
    parser.add_argument("--cache", default="")
    parser.add_argument("--owner", default="")
    asked = parser.parse_args()
    began = time.perf_counter()
    told: dict[str, object] = {}
    if asked.verb == "status":
        root = Path(asked.args[0])
        seen = Seen(Path(asked.store), root)
        told["digest"] = scan(root, seen=seen).info.digest
        told["read"] = seen.misses
    else:
        from trackbed.storage.open import Options, open_chunks  # status needs none of it, as the command does not

        cache = Path(asked.cache) if asked.cache else None
        store = open_chunks(asked.store, KEY, Options(cache=cache, level=asked.level))
        if asked.verb == "add":
            rest = {"owner": asked.owner} if asked.owner else {}
            start = time.perf_counter()
            info = store.put_tree(Path(asked.args[0]), **rest)
            told |= {"digest": info.digest, "files": info.files, "bytes": info.size_bytes}
            told["put_s"] = time.perf_counter() - start  # as a supervisor sees it, whose store is open
        elif asked.verb == "checkout":
            store.get_tree(asked.args[0], Path(asked.args[1]))
        store.close()
    told["inside_s"] = time.perf_counter() - began
    told["rss_mib"] = _peak_mib()
    print(json.dumps(told))


def _peak_mib() -> float:
    """Of this program alone: getrusage would count what the parent held before the exec."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0.0


if __name__ == "__main__":
    main()
