"""Tiny real wheels and indexes of them, made on the spot: tests of environments need no internet."""

import base64
import hashlib
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path


def wheel(
    folder: Path,
    name: str,
    version: str,
    files: Mapping[str, str],
    *,
    tag: str = "py3-none-any",
    requires: Sequence[str] = (),
    scripts: Mapping[str, str] | None = None,
    python: str = ">=3.8",
) -> Path:
    """Write a wheel into `folder` and return its path; `scripts` maps a command to `module:function`."""
    folder.mkdir(parents=True, exist_ok=True)
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Python: {python}\n"
    content = {
        **files,
        f"{info}/METADATA": head + "".join(f"Requires-Dist: {one}\n" for one in requires),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: trackbed-testing\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    if scripts:
        content[f"{info}/entry_points.txt"] = "[console_scripts]\n" + "".join(
            f"{k} = {v}\n" for k, v in scripts.items()
        )
    path = folder / f"{module}-{version}-{tag}.whl"
    record: list[str] = []
    with zipfile.ZipFile(path, "w") as archive:
        for where, text in content.items():
            data = text.encode()
            archive.writestr(where, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
            record.append(f"{where},sha256={digest},{len(data)}")
        archive.writestr(f"{info}/RECORD", "\n".join([*record, f"{info}/RECORD,,"]) + "\n")
    return path


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def index(root: Path, wheels: Sequence[Path], *, yanked: Mapping[str, str] | None = None) -> str:
    """Lay out a simple index (PEP 503) below `root` and return its URL; `yanked` maps a file name to the reason."""
    for path in wheels:
        name = path.name.split("-")[0].replace("_", "-").lower()
        place = root / name
        place.mkdir(parents=True, exist_ok=True)
        (place / path.name).write_bytes(path.read_bytes())
    for place in root.iterdir():
        links: list[str] = []
        for path in sorted(place.glob("*.whl")):
            why = (yanked or {}).get(path.name)
            mark = f' data-yanked="{why}"' if why is not None else ""
            links.append(f'<a href="{path.name}#sha256={sha256(path)}"{mark}>{path.name}</a><br>')
        (place / "index.html").write_text("<!DOCTYPE html><html><body>\n" + "\n".join(links) + "\n</body></html>\n")
    return root.as_uri()
