"""The built web page. It holds no data, so it is public; what it shows it must ask for.

Files are listed once at the start: a path from outside is only a key of that list, never joined to a folder.
"""

import gzip
import mimetypes
from functools import lru_cache
from pathlib import Path
from typing import Any

from litestar import Request, Response, get
from litestar.exceptions import NotFoundException

from trackbed.domain.scope import Permission

FOLDER = Path(__file__).parent / "static"
_TEXTY = ("text/", "application/javascript", "application/json", "image/svg+xml", "application/manifest+json")
_NAMED = ("runs/", "models/", "datasets/")  # pages of things whose names may have dots
_ABSENT = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Trackbed</title>
<body style="font: 16px/1.5 system-ui, sans-serif; max-width: 40em; margin: 4em auto; padding: 0 1em">
<h1>Trackbed is running</h1>
<p>The web page is not built into this installation. Build it with <code>make web</code>, or install a released wheel,
then start the server again. Everything else works: try <code>trackbed status</code>.</p>
<p lang="zh">服务正在运行,但此安装未包含网页。请运行 <code>make web</code> 构建后重启服务。其余功能均可使用:<code>trackbed status</code>。</p>
</body></html>
"""


class StaticFiles:
    """The files of one build by their paths below its folder; hidden ones are left out."""

    def __init__(self, folder: Path) -> None:
        self._files: dict[str, Path] = {}
        for path in sorted(folder.rglob("*")) if folder.is_dir() else []:
            inner = path.relative_to(folder)
            if path.is_file() and not path.is_symlink() and not any(part.startswith(".") for part in inner.parts):
                self._files[inner.as_posix()] = path

    def find(self, path: str, *, gzipped: bool) -> Response[bytes]:
        """Return a file, or the page itself for a deep link. A missing file is 404, and so is all of /api."""
        name = path.strip("/") or "index.html"
        if name not in self._files and name != "index.html":
            dotted = "." in name.rsplit("/", 1)[-1] and not name.startswith(_NAMED)
            if name.startswith(("assets/", "api/")) or name == "api" or dotted or ".." in name.split("/"):
                raise NotFoundException
            name = "index.html"
        if name not in self._files:
            return Response(_ABSENT.encode(), media_type="text/html", headers={"Cache-Control": "no-cache"})
        media = mimetypes.guess_type(name)[0] or "application/octet-stream"
        kept = "public, max-age=31536000, immutable" if name.startswith("assets/") else "no-cache"
        headers = {"Cache-Control": kept, "Vary": "Accept-Encoding"}
        if gzipped and media.startswith(_TEXTY):
            body = _zipped(self._files[name], self._files[name].stat().st_mtime_ns)
            headers["Content-Encoding"] = "gzip"
        else:
            body = self._files[name].read_bytes()
        return Response(body, media_type=media, headers=headers)


@lru_cache(maxsize=256)
def _zipped(path: Path, _mtime_ns: int) -> bytes:
    return gzip.compress(path.read_bytes(), 6, mtime=0)


@get(["/", "/{path:path}"], opt={"permission": Permission.PUBLIC}, include_in_schema=False)
async def page(request: Request[Any, Any, Any], path: str = "") -> Response[bytes]:
    """The web page and its parts."""
    files: StaticFiles = request.app.state.static_files
    return files.find(path, gzipped="gzip" in request.headers.get("accept-encoding", ""))


routes = [page]
