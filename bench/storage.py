"""Our store and DVC side by side: the same bytes, the same disk, one after the other, order swapped every round.

    python bench/storage.py --dvc /path/to/dvc [--scale 1.0] [--rounds 3] [--only jsonl,small,…] [--work FOLDER]

Both run as processes (start-up counted). Ours compresses, encrypts and syncs every pack; DVC copies into its cache (`add`)
and then into a remote folder (`push`), which is its kindest case. Every restore is compared with the input by digest. With
a scale below 1 the inputs shrink; ratios of bytes then sink a little, because fixed costs do not. Wall
times say something on a quiet machine only: each row tells its load, and `quiet` is false above 2.
"""

import argparse
import hashlib
import json
import os
import platform
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import numpy as np
from blake3 import blake3

HERE = Path(__file__).resolve().parent
MIB = 1024 * 1024
CASES = ("jsonl", "insert", "append", "same", "generations", "fast", "small", "status", "checkpoint", "memory")


@dataclass
class Took:
    """`synced_s`: until the disk has it too. Ours ends with it there; DVC leaves it to the page cache."""

    wall_s: float
    cpu_s: float
    synced_s: float
    out: str = ""


@dataclass
class Case:
    """Times of one thing over the rounds."""

    ours: list[Took] = field(default_factory=list)
    peer: list[Took] = field(default_factory=list)

    def ratio(self, what: str = "wall_s") -> float:
        pairs = [getattr(o, what) / getattr(p, what) for o, p in zip(self.ours, self.peer, strict=True)]
        return statistics.median(pairs)


def run(argv: list[str], cwd: Path, env: dict[str, str] | None = None) -> Took:
    os.sync()  # nobody pays for what another left in the page cache
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done = subprocess.run(argv, cwd=cwd, env={**os.environ, **(env or {})}, capture_output=True, text=True)
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    os.sync()
    synced = time.perf_counter() - began
    if done.returncode:
        raise SystemExit(f"{argv} failed:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Took(wall, cpu, synced, done.stdout)


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def cold(folder: Path) -> None:
    """Take a folder's bytes out of the page cache of this machine (the host may still hold them)."""
    for path in [folder] if folder.is_file() else folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            fd = os.open(path, os.O_RDONLY)
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


def digest_of(folder: Path) -> str:
    hasher = blake3()
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.name != ".gitignore"):
        hasher.update(str(path.relative_to(folder)).encode() + b"\0")
        hasher.update_mmap(path) if path.stat().st_size else None
    return hasher.hexdigest()


# ---- inputs, made by seed: JSONL of text-like records, lines of about 1 KiB


def _words(count: int) -> list[bytes]:
    dice = random.Random(1)
    letters = "etaoinshrdlucmfwypvbgkqjxz"
    weights = [1 / (rank + 1) for rank in range(len(letters))]
    return ["".join(dice.choices(letters, weights, k=dice.randint(2, 11))).encode() for _ in range(count)]


def lines(seed: int, total_bytes: int):
    words = _words(20_000)
    chance = (1 / np.arange(1, len(words) + 1) ** 0.6).cumsum()
    rng = np.random.default_rng(seed)
    made, number = 0, 0
    while made < total_bytes:
        picks = np.searchsorted(chance, rng.random((256, 150)) * chance[-1])
        sizes = rng.integers(60, 150, 256)
        for row, size in zip(picks, sizes, strict=True):
            text = b" ".join([words[pick] for pick in row[:size]])
            line = b'{"id": "%x", "n": %d, "text": "%s"}\n' % (seed * 1_000_003 + number * 7919, number, text)
            number += 1
            made += len(line)
            yield line


def write_jsonl(path: Path, seed: int, total_bytes: int) -> None:
    with path.open("wb", MIB) as out:
        for line in lines(seed, total_bytes):
            out.write(line)


def insert(source: Path, target: Path, seed: int, share: float = 0.01) -> None:
    """Copy with `share` of lines inserted at random places."""
    dice = random.Random(seed)
    fresh = lines(1000 + seed, 1 << 62)
    with source.open("rb", MIB) as given, target.open("wb", MIB) as out:
        for line in given:
            if dice.random() < share:
                out.write(next(fresh))
            out.write(line)


def append(source: Path, target: Path, seed: int, share: float = 0.01) -> None:
    shutil.copyfile(source, target)
    with target.open("ab") as out:
        for line in lines(2000 + seed, int(source.stat().st_size * share)):
            out.write(line)


def write_small(folder: Path, count: int) -> None:
    folder.mkdir()
    fresh = lines(5, 1 << 62)
    for number in range(count):
        sub = folder / f"{number // 1000:03d}"
        sub.mkdir(exist_ok=True)
        (sub / f"{number:06d}.txt").write_bytes(b"".join(next(fresh) for _ in range(10)))


def write_checkpoint(path: Path, seed: int, parameters: int, previous: Path | None = None, lr: float = 1e-3) -> None:
    """A safetensors file as training leaves it: fp32 master, two moments, bf16 weights (14 bytes a parameter)."""
    rng = np.random.default_rng(seed)
    shape = (parameters // 1024, 1024)
    if previous is None:
        master = (rng.standard_normal(shape) * 0.02).astype(np.float32)
        first = (rng.standard_normal(shape) * 1e-4).astype(np.float32)
        second = (rng.standard_normal(shape) ** 2 * 1e-8).astype(np.float32)
    else:
        master, first, second = (one.copy() for one in _read_checkpoint(previous, shape))
        grad = (rng.standard_normal(shape) * 1e-4).astype(np.float32)
        first = np.float32(0.9) * first + np.float32(0.1) * grad
        second = np.float32(0.999) * second + np.float32(0.001) * grad * grad
        master = master - np.float32(lr) * first / (np.sqrt(second) + np.float32(1e-8))
    rounded = (master.view(np.uint32) + np.uint32(0x7FFF) + ((master.view(np.uint32) >> 16) & 1)) >> 16
    tensors = {"master": master, "exp_avg": first, "exp_avg_sq": second, "weight": rounded.astype(np.uint16)}
    head, at = {}, 0
    for name, tensor in tensors.items():
        head[name] = {
            "dtype": "BF16" if name == "weight" else "F32",
            "shape": list(shape),
            "data_offsets": [at, at + tensor.nbytes],
        }
        at += tensor.nbytes
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as out:
        out.write(len(text).to_bytes(8, "little") + text)
        for tensor in tensors.values():
            out.write(tensor.tobytes())


def _read_checkpoint(path: Path, shape: tuple[int, int]) -> list[np.ndarray]:
    data = np.fromfile(path, np.uint8)
    start = 8 + int.from_bytes(data[:8].tobytes(), "little")
    size = shape[0] * shape[1] * 4
    return [data[start + n * size : start + (n + 1) * size].view(np.float32).reshape(shape) for n in range(3)]


# ---- the two sides


class Ours:
    def __init__(self, home: Path) -> None:
        self.home = home
        self.store = home / "store"
        self.seen = home / "seen"
        home.mkdir(parents=True)

    def call(self, *args: str, level: int = 2) -> Took:
        argv = [sys.executable, str(HERE / "storage_ours.py"), *args, f"--level={level}"]
        return run(argv, self.home)

    def add(self, folder: Path, *, level: int = 2, owner: str = "") -> Took:
        return self.call("add", self.store.as_uri(), str(folder), *([f"--owner={owner}"] if owner else []), level=level)

    def checkout(self, digest: str, target: Path) -> Took:
        return self.call("checkout", self.store.as_uri(), digest, str(target))

    def status(self, folder: Path) -> Took:
        return self.call("status", str(self.seen), str(folder))

    def stored(self) -> int:
        return size_of(self.store / "chunks")

    def objects(self) -> int:
        return sum(1 for path in (self.store / "chunks" / "packs").rglob("*") if path.is_file())


class Dvc:
    def __init__(self, program: str, home: Path) -> None:
        self.program, self.home, self.remote = program, home, home.with_name(home.name + "-remote")
        home.mkdir(parents=True)
        self.remote.mkdir()
        self.call("init", "--no-scm", "-q")
        self.call("config", "core.analytics", "false")
        self.call("config", "core.check_update", "false")
        self.call("remote", "add", "-d", "there", str(self.remote))

    def call(self, *args: str) -> Took:
        return run([self.program, *args], self.home, {"DVC_NO_ANALYTICS": "1", "DVC_GLOBAL_CONFIG_DIR": str(self.home)})

    def put(self, folder: Path) -> None:
        """Lay the input into its workspace (not timed), as a file of its own."""
        target = self.home / "data"
        if target.exists():
            shutil.rmtree(target)
        shutil.copytree(folder, target)
        cold(target)

    def add(self) -> Took:
        added, pushed = self.call("add", "-q", "data"), self.call("push", "-q")
        return Took(added.wall_s + pushed.wall_s, added.cpu_s + pushed.cpu_s, added.synced_s + pushed.synced_s)

    def checkout(self) -> Took:
        """From the remote into an empty cache and workspace."""
        shutil.rmtree(self.home / "data", ignore_errors=True)
        shutil.rmtree(self.home / ".dvc" / "cache", ignore_errors=True)
        return self.call("pull", "-q")

    def checkout_cached(self) -> Took:
        shutil.rmtree(self.home / "data", ignore_errors=True)
        return self.call("checkout", "-q")

    def status(self) -> Took:
        return self.call("status", "-q")

    def stored(self) -> int:
        return size_of(self.remote)


class Bench:
    def __init__(self, asked: argparse.Namespace) -> None:
        self.asked = asked
        self.work = Path(tempfile.mkdtemp(prefix="bench-storage-", dir=asked.work or None))
        self.inputs = self.work / "inputs"
        self.inputs.mkdir()
        self.rows: list[dict[str, object]] = []
        self.wanted = set(asked.only.split(",")) if asked.only else set(CASES)

    def row(
        self, what: str, ours: float, peer: float | None, target: str, holds: bool | None, unit: str, **rest
    ) -> None:
        ratio = None if peer is None else (peer / ours if "fewer" in target else ours / peer)
        if "median_ratio" in rest:
            ratio = rest.pop("median_ratio")
        one = {
            "what": what, "ours": round(ours, 4), "peer": None if peer is None else round(peer, 4),
            "ratio": None if ratio is None else round(ratio, 3), "target": target, "holds": holds, "unit": unit,
            "n": rest.pop("n", 1), "load": round(os.getloadavg()[0], 2), "quiet": os.getloadavg()[0] <= 2, "scale": self.asked.scale, **rest,
        }  # fmt: skip
        self.rows.append(one)
        print(json.dumps(one), flush=True)

    def times(self, what: str, case: Case, most: float, **rest) -> None:
        ours = statistics.median(took.wall_s for took in case.ours)
        peer = statistics.median(took.wall_s for took in case.peer)
        self.row(
            what, ours, peer, f"<= {most}x", case.ratio() <= most, "s", n=len(case.ours), median_ratio=case.ratio(),
            cpu_ratio=round(case.ratio("cpu_s"), 3), synced_ratio=round(case.ratio("synced_s"), 3), **rest,
        )  # fmt: skip

    def bytes(self, what: str, ours: int, peer: int, least: float) -> None:
        self.row(what, ours, peer, f">= {least}x fewer", peer >= least * ours, "bytes")

    def folder(self, name: str) -> Path:
        found = self.inputs / name
        found.mkdir(exist_ok=True)
        return found

    def same(self, source: Path, target: Path) -> None:
        if digest_of(source) != digest_of(target):
            raise SystemExit(f"WRONG BYTES: {target} is not {source}")

    def go(self) -> None:
        try:
            if self.wanted & {"jsonl", "insert", "append", "same", "generations", "fast", "memory"}:
                self.text()
            if self.wanted & {"small", "status"}:
                self.small()
            if "checkpoint" in self.wanted:
                self.checkpoint()
        finally:
            shutil.rmtree(self.work, ignore_errors=True)
        self.write()

    def pair(self, number: int, ours, peer) -> tuple[Took, Took]:
        """Run both, the other one first every second round."""
        if number % 2:
            theirs = peer()
            return ours(), theirs
        mine = ours()
        return mine, peer()

    def text(self) -> None:
        total = int(2 * 1024 * MIB * self.asked.scale)
        v1 = self.folder("v1")
        write_jsonl(v1 / "data.jsonl", 1, total)
        edits = {"v2": (insert, 1), "v3": (append, 1)}
        for name, (edit, seed) in edits.items():
            edit(v1 / "data.jsonl", self.folder(name) / "data.jsonl", seed)
        cases = {name: Case() for name in ("add", "insert", "append", "cold", "warm", "fast")}
        grown: dict[str, tuple[int, int]] = {}
        for number in range(self.asked.rounds):
            ours, dvc = Ours(self.work / f"o{number}"), Dvc(self.asked.dvc, self.work / f"d{number}")
            mine, theirs = self._add(number, ours, dvc, v1, cases["add"], grown, "v1")
            info = json.loads(mine.out)
            self._out(number, ours, dvc, info["digest"], v1, cases)
            if self.wanted & {"insert", "generations"}:
                mine, _ = self._add(number, ours, dvc, self.folder("v2"), cases["insert"], grown, "v2")
                target = self.work / "out2"
                ours.checkout(json.loads(mine.out)["digest"], target)
                self.same(self.folder("v2"), target)
                shutil.rmtree(target)
            if "append" in self.wanted:
                # on top of version 1, as the insert was: version 2 is known by then, which changes little
                self._add(number, ours, dvc, self.folder("v3"), cases["append"], grown, "v3")
            if number == 0:
                self._same_again(ours, v1)
                self._generations(ours)
                peak = info["rss_mib"]
                base = json.loads(ours.call("start", ours.store.as_uri()).out)["rss_mib"]
                self.row(
                    "add, peak memory over the interpreter", peak - base, None, "<= 256 MiB", peak - base <= 256, "MiB"
                )
            if "fast" in self.wanted:
                quick = Ours(self.work / f"f{number}")
                cold(v1)
                cases["fast"].ours.append(quick.add(v1, level=1))
                cases["fast"].peer.append(theirs)
                shutil.rmtree(quick.home)
            for folder in (ours.home, dvc.home, dvc.remote):
                shutil.rmtree(folder)
        size = (v1 / "data.jsonl").stat().st_size
        self.bytes("first version, JSONL, stored", *grown["v1"], 2.1)
        if "v2" in grown:
            self.bytes("1% of lines inserted, stored", *grown["v2"], 140)
            self.times("1% inserted: add + push", cases["insert"], 0.8)
        if "v3" in grown:
            self.bytes("1% appended, stored", *grown["v3"], 200)
        self.times("JSONL: add + push", cases["add"], 1.0)
        if cases["fast"].ours:
            self.times("JSONL, --fast: add + push", cases["fast"], 0.8)
        best = size / 1e6 / statistics.median(took.wall_s for took in cases["cold"].ours)
        self.times("JSONL: checkout, cold", cases["cold"], 1.3)
        self.row("JSONL: checkout, cold, rate", best, None, ">= 300 MB/s", best >= 300, "MB/s", n=self.asked.rounds)
        self.times("JSONL: checkout, warm", cases["warm"], 1.3)

    def _add(self, number: int, ours: Ours, dvc: Dvc, folder: Path, case: Case, grown: dict, name: str):
        before = ours.stored() if ours.store.exists() else 0, dvc.stored()
        dvc.put(folder)
        cold(folder)
        mine, theirs = self.pair(number, lambda: ours.add(folder), dvc.add)
        case.ours.append(mine)
        case.peer.append(theirs)
        grown[name] = ours.stored() - before[0], dvc.stored() - before[1]
        return mine, theirs

    def _out(self, number: int, ours: Ours, dvc: Dvc, digest: str, source: Path, cases: dict[str, Case]) -> None:
        for kind in ("cold", "warm"):
            target = self.work / "out"

            def mine(target: Path = target, kind: str = kind) -> Took:
                if kind == "cold":
                    cold(ours.store)
                return ours.checkout(digest, target)

            def theirs(kind: str = kind) -> Took:
                if kind == "cold":
                    cold(dvc.remote)
                return dvc.checkout()

            one, other = self.pair(number, mine, theirs)
            self.same(source, target)
            self.same(source, dvc.home / "data")
            shutil.rmtree(target)
            cases[kind].ours.append(one)
            cases[kind].peer.append(other)

    def _same_again(self, ours: Ours, folder: Path) -> None:
        before = ours.stored()
        ours.add(folder)
        grew = ours.stored() - before
        self.row("the same tree again, stored", grew, None, "< 4096 bytes", grew < 4096, "bytes")

    def _generations(self, ours: Ours) -> None:
        if "generations" not in self.wanted:
            return
        last, size = self.folder("v2") / "data.jsonl", 0
        for generation in (2, 3):
            folder = self.folder(f"g{generation}")
            insert(last, folder / "data.jsonl", 10 + generation)
            before = ours.stored()
            told = json.loads(ours.add(folder).out)
            size = ours.stored() - before
            last = folder / "data.jsonl"
        target = self.work / "outg"
        ours.checkout(told["digest"], target)
        self.same(folder, target)
        shutil.rmtree(target)
        self.bytes("third generation of 1% inserted, stored (a whole file for DVC)", size, last.stat().st_size, 120)

    def small(self) -> None:
        count = max(int(20_000 * self.asked.scale), 100) if self.asked.scale < 1 else 20_000
        source = self.inputs / "small"
        write_small(source, count)
        add, out, status = Case(), Case(), Case()
        for number in range(self.asked.rounds):
            ours, dvc = Ours(self.work / f"so{number}"), Dvc(self.asked.dvc, self.work / f"sd{number}")
            dvc.put(source)
            cold(source)
            mine, theirs = self.pair(number, lambda o=ours: o.add(source), dvc.add)
            add.ours.append(mine)
            add.peer.append(theirs)
            digest, target = json.loads(mine.out)["digest"], self.work / "outs"
            cold(ours.store)
            cold(dvc.remote)
            one, other = self.pair(number, lambda o=ours, d=digest, t=target: o.checkout(d, t), dvc.checkout)
            self.same(source, target)
            self.same(source, dvc.home / "data")
            shutil.rmtree(target)
            out.ours.append(one)
            out.peer.append(other)
            time.sleep(2.5)  # what was written a moment ago is not believed by its times
            ours.status(source)
            told = ours.status(source)
            if json.loads(told.out) | {"read": 0} != json.loads(told.out) or json.loads(told.out)["digest"] != digest:
                raise SystemExit("status read content, or told another digest")
            status.ours.append(told)
            dvc.status()
            status.peer.append(dvc.status())
            if number == 0:
                packs = ours.objects()
                self.row("small files: objects in the store", packs, count, "<= 4", packs <= 4, "objects")
                self.bytes("small files, stored", ours.stored(), dvc.stored(), 2.0)
            for folder in (ours.home, dvc.home, dvc.remote):
                shutil.rmtree(folder)
        self.times(f"{count} small files: add + push", add, 0.5)
        self.times(f"{count} small files: checkout, cold", out, 0.4)
        self.times(f"{count} small files: status without change", status, 0.5)

    def checkpoint(self) -> None:
        parameters = max(int(28 * MIB * self.asked.scale), MIB)
        places = [self.folder(f"c{number}") / "model.safetensors" for number in range(3)]
        write_checkpoint(places[0], 1, parameters)
        write_checkpoint(places[1], 2, parameters, places[0])
        shutil.copyfile(places[1], places[2])
        size = places[0].stat().st_size
        with places[2].open("r+b") as out:  # one stretch of 5% of the master weights, as a fine-tuned layer
            out.seek(1024 * MIB // 1024)
            stretch = parameters * 4 // 20
            data = np.frombuffer(places[1].read_bytes()[MIB : MIB + stretch // 4 * 4], np.uint32).copy()
            data ^= np.random.default_rng(3).integers(0, 1 << 12, data.size, dtype=np.uint32)
            out.seek(MIB)
            out.write(data.tobytes())
        ours = Ours(self.work / "c")
        grown, walls = [], []
        for place in places:
            cold(place)
            before = ours.stored() if ours.store.exists() else 0
            took = ours.add(place.parent, owner="run_bench")
            grown.append(ours.stored() - before)
            walls.append(json.loads(took.out)["put_s"])
            target = self.work / "outc"
            ours.checkout(json.loads(took.out)["digest"], target)
            self.same(place.parent, target)
            shutil.rmtree(target)
        raw = self._raw_disk(size)
        rate = size / 1e6 / statistics.median(walls[:2])
        self.row("checkpoint at full rate, stored", grown[0], size, ">= 1.2x fewer", size >= 1.2 * grown[0], "bytes")
        self.row(
            "next checkpoint, every value moved, stored",
            grown[1],
            size,
            ">= 1.2x fewer",
            size >= 1.2 * grown[1],
            "bytes",
        )
        self.row(
            "checkpoint, 5% of the weights changed, stored",
            grown[2],
            size,
            ">= 30x fewer",
            size >= 30 * grown[2],
            "bytes",
        )
        self.row("checkpoint save, rate against the raw disk", rate, raw, ">= 0.6x", rate >= 0.6 * raw, "MB/s", n=2)

    def _raw_disk(self, size: int) -> float:
        data = np.random.default_rng(9).bytes(16 * MIB)
        rates = []
        for _ in range(3):
            place = self.work / "raw"
            began = time.perf_counter()
            with place.open("wb") as out:
                for _ in range(max(size // len(data), 1)):
                    out.write(data)
                out.flush()
                os.fsync(out.fileno())
            rates.append(place.stat().st_size / 1e6 / (time.perf_counter() - began))
            place.unlink()
        return statistics.median(rates)

    def write(self) -> None:
        about = {
            "hardware": f"{os.cpu_count()} cores, {platform.machine()}, {_memory_gib()} GiB",
            "versions": {
                "python": platform.python_version(), "dvc": run([self.asked.dvc, "--version"], HERE).out.strip(),
                **{name: version(name) for name in ("zstandard", "blake3", "cryptography", "numpy", "obstore")},
            },
            "command": "python bench/storage.py " + " ".join(
                part for part in sys.argv[1:] if not part.startswith("/") and "=/" not in part and part not in ("--dvc", "--work", "--out")
            ),
            "script": hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12],
        }  # fmt: skip
        out = Path(self.asked.out) if self.asked.out else HERE / "results" / "storage.json"
        out.parent.mkdir(exist_ok=True)
        kept = [one for one in json.loads(out.read_text()) if one["what"] not in {row["what"] for row in self.rows}] if (
            out.exists() and self.asked.only
        ) else []  # fmt: skip
        out.write_text(json.dumps(kept + [row | about for row in self.rows], indent=1, ensure_ascii=False) + "\n")


def _memory_gib() -> int:
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dvc", required=True, help="the program, in an environment of its own")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help=",".join(CASES))
    parser.add_argument("--work", default="")
    parser.add_argument("--out", default="")
    print("load at start", os.getloadavg(), flush=True)
    Bench(parser.parse_args()).go()


if __name__ == "__main__":
    main()
