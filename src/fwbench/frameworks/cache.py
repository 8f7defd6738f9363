"""Manifests kept between sessions: asking a framework costs its whole import."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from fwbench import __version__
from fwbench.frameworks.manifest import Manifest


class ManifestCache:
    """Manifests in pytest's cache folder, as long as they would be the same if asked for again.

    Args:
        cache: ``config.cache``; None where pytest's cache is switched off.
        threads: of every framework.
    """

    def __init__(self, cache: Any, threads: int) -> None:
        self._cache = cache
        self._threads = threads

    def get(self, name: str) -> Manifest | None:
        """The manifest of a framework; None if it must be asked."""
        stored = self._cache.get(_key(name), None) if self._cache else None
        if not stored or stored["fingerprint"] != self._fingerprint(stored["manifest"]["source"]):
            return None
        return Manifest.from_json(stored["manifest"])

    def put(self, manifest: Manifest) -> None:
        """Keep a manifest."""
        if self._cache:
            fingerprint = self._fingerprint(manifest.source)
            stored = {"fingerprint": fingerprint, "manifest": manifest.to_json()}
            self._cache.set(_key(manifest.name), stored)

    def _fingerprint(self, source: str) -> str:
        """Changes whenever a framework could answer differently.

        Installing or removing a package changes the folder that packages lie in; other folders of
        the path change with every file that is written there.
        """
        packages = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
        facts = [
            __version__,
            [field.name for field in dataclasses.fields(Manifest)],
            sys.executable,
            self._threads,
            [(path, _modified_ns(path)) for path in (*packages, source)],
            sorted(str(device) for device in Path("/dev").glob("nvidia[0-9]*")),
            os.environ.get("CUDA_VISIBLE_DEVICES"),
        ]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _key(name: str) -> str:
    return f"fwbench/{name}"


def _modified_ns(path: str) -> int:
    try:
        return Path(path).stat().st_mtime_ns
    except OSError:
        return 0
