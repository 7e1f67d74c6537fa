"""Build the dependency layer of a target: ``python -m tooling.lambda_dependencies cloud|host``.

The result is ``.build/dependencies/<target>/python``, so that a synth needs no network and no compiler.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tooling.steps import BUILD, ROOT, VENV_BIN, StepFailed, exclusively, run, say

LOCK: Final = ROOT / "requirements" / "runtime.txt"
DEPENDENCIES: Final = BUILD / "dependencies"

# Where each target's code will run. Lambda's Python 3.13 has glibc 2.34 on arm64; wheels for 2.28 load there.
# `host` runs in this machine's interpreter, because the local AWS does.
TARGETS: Final[Mapping[str, Sequence[str]]] = {
    "cloud": ("--python-platform", "aarch64-manylinux_2_28", "--python-version", "3.13"),
    "host": ("--python", str(VENV_BIN / "python")),
}

# 27 MB leaves most of Lambda's 250 MB to a team's own tools and keeps cold starts short. It bounds what goes to the
# cloud; wheels for this machine's architecture weigh what they weigh.
CLOUD_BYTES_MAX: Final = 27_000_000

# Never read by a running function: sources and stubs of compiled modules, bills of materials, installer's notes, and
# what only serves a browser, as the API describes itself as JSON and has no page to show.
# Licences and METADATA stay: the first are owed, the second is looked up at run time.
_UNUSED_FILES: Final = (
    "*.c",
    "*.h",
    "*.pyi",
    "*.pyc",
    "swagger_ui/*.js",
    "swagger_ui/*.css",
    "*.dist-info/RECORD",
    "*.dist-info/INSTALLER",
    "*.dist-info/REQUESTED",
)
_UNUSED_FOLDERS: Final = ("*-stubs", "__pycache__", "*.dist-info/sboms", "bin")

_REMEDY: Final = """\
Missing: the wheels named in requirements/runtime.txt for this target. They come from the Python package index that uv
is configured for (UV_DEFAULT_INDEX). Check that this machine reaches it, then run `make setup` again."""


def build(target: str) -> Path:
    """Install the runtime lock for one target and answer the layer's folder.

    Raises:
        StepFailed: wheels are missing, or the bundle is larger than allowed; the earlier folder stays as it was.
    """
    say(f"building the dependency layer for {target}")
    fresh = DEPENDENCIES / f"{target}.fresh"
    shutil.rmtree(fresh, ignore_errors=True)
    install: list[str | Path] = [VENV_BIN / "uv", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"]
    run(
        [*install, *TARGETS[target], "--target", fresh / "python", "--require-hashes", "-r", LOCK],
        problem=f"uv could not install the runtime packages for {target}.",
        remedy=_REMEDY,
        # Installed by copy: a hard link into uv's cache would let the trimming below reach other environments.
        extra={"UV_LINK_MODE": "copy"},
    )
    trim(fresh / "python")
    size = size_of(fresh)
    if target == "cloud" and size > CLOUD_BYTES_MAX:
        raise StepFailed(
            f"the {target} layer is {size:,} bytes; {CLOUD_BYTES_MAX:,} are allowed.",
            "Remove a dependency, or raise the limit in tooling/lambda_dependencies.py with the reason.",
        )
    final = DEPENDENCIES / target
    shutil.rmtree(final, ignore_errors=True)
    fresh.rename(final)
    say(f"{target}: {size / 1e6:.1f} MB unzipped")
    return final


def trim(packages: Path) -> None:
    """Delete from an installed tree what no import and no licence needs."""
    for pattern in _UNUSED_FOLDERS:
        for folder in list(packages.rglob(pattern)):
            shutil.rmtree(folder, ignore_errors=True)
    for pattern in _UNUSED_FILES:
        for file in list(packages.rglob(pattern)):
            file.unlink()


def size_of(folder: Path) -> int:
    """Bytes of all files below a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Build a dependency layer.")
    parser.add_argument("target", choices=sorted(TARGETS))
    chosen: str = parser.parse_args().target
    with exclusively(f"dependencies-{chosen}"):
        build(chosen)
