"""Manifests kept between sessions: asking a framework costs its whole import."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from fwbench.environments.named import Environments
from fwbench.manifest import Absent, Manifest
from fwbench.version import __version__


class ManifestCache:
    """Manifests in pytest's cache folder, as long as they would be the same if asked for again.

    Args:
        cache: ``config.cache``; None where pytest's cache is switched off.
        threads: of every framework.
        environments: in which some of them are.
    """

    def __init__(self, cache: Any, threads: int, environments: Environments) -> None:
        self._cache = cache
        self._threads = threads
        self._environments = environments

    def get(self, name: str) -> Manifest | Absent | None:
        """What a framework has said of itself; None if it must be asked."""
        stored = self._cache.get(_key(name), None) if self._cache else None
        if not stored:
            return None
        if "absent" in stored:
            same = stored["fingerprint"] == self._fingerprint(name, "")
            return Absent(**stored["absent"]) if same else None
        if stored["fingerprint"] != self._fingerprint(name, stored["manifest"]["source"]):
            return None
        return Manifest.from_json(stored["manifest"])

    def put(self, manifest: Manifest | Absent) -> None:
        """Keep a manifest, or that a package is missing; what is broken may be mended anywhere."""
        if not self._cache:
            return
        if isinstance(manifest, Absent):
            if manifest.missing:
                fingerprint = self._fingerprint(manifest.name, "")
                kept = {"fingerprint": fingerprint, "absent": dataclasses.asdict(manifest)}
                self._cache.set(_key(manifest.name), kept)
        else:
            fingerprint = self._fingerprint(manifest.name, manifest.source)
            stored = {"fingerprint": fingerprint, "manifest": manifest.to_json()}
            self._cache.set(_key(manifest.name), stored)

    def _fingerprint(self, name: str, source: str) -> str:
        """Changes whenever a framework could answer differently.

        Installing or removing a package changes the folder that packages lie in; other folders of
        the path change with every file that is written there.
        """
        environment = self._environments.of(name)
        interpreter = self._environments.interpreter_of(name)
        path = sys.path if environment is None else environment.path
        packages = [entry for entry in path if entry.endswith(("site-packages", "dist-packages"))]
        facts = [
            __version__,
            [field.name for field in dataclasses.fields(Manifest)],
            interpreter,
            _modified_ns(interpreter),
            self._threads,
            [(entry, _modified_ns(entry)) for entry in (*packages, source)],
            sorted(str(device) for device in Path("/dev").glob("nvidia[0-9]*")),
            [os.environ.get(name) for name in ("CUDA_VISIBLE_DEVICES", "PYTHONPATH")],
        ]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _key(name: str) -> str:
    return f"fwbench/{name}"


def _modified_ns(path: str) -> int:
    try:
        return Path(path).stat().st_mtime_ns
    except OSError:
        return 0
