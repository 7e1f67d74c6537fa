"""A function's code and layers lie on the machine once, however many workers run them."""

from __future__ import annotations

import hashlib
import tempfile
import threading
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from local.corrections._seam import OutOfDate, module

_unpacking = threading.Lock()


def correct() -> None:
    """Unpack every package once, and show it to each new worker by links.

    The emulator unpacks some thirty megabytes for every worker and compiles them again: a second of each cold start,
    and gigabytes where workers are killed on purpose.
    """
    runtime = module("core.lambda_runtime")
    if getattr(runtime, "zipfile", None) is not zipfile:
        msg = "the emulator's workers no longer unpack their packages by zipfile"
        raise OutOfDate(msg)
    runtime.zipfile = SimpleNamespace(**{**vars(zipfile), "ZipFile": _Unpacked})  # type: ignore[attr-defined]


class _Unpacked(zipfile.ZipFile):
    """A package whose contents are linked, and unpacked if nobody has done that yet."""

    def extractall(self, path: Any = None, *_: Any) -> None:
        whole = self._unpacked()
        for entry in whole.iterdir():
            (Path(path) / entry.name).symlink_to(entry)

    def _unpacked(self) -> Path:
        contents = [(entry.filename, entry.CRC, entry.file_size) for entry in self.infolist()]
        digest = hashlib.sha256(repr(contents).encode()).hexdigest()
        whole = Path(tempfile.gettempdir()) / f"package-{digest[:32]}"
        with _unpacking:
            if not whole.exists():
                part = Path(tempfile.mkdtemp(prefix="package-", suffix=".part"))
                super().extractall(part)
                part.replace(whole)
        return whole
