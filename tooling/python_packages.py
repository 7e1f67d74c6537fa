"""Install the locked Python packages into ``.venv``: ``python3 -m tooling.python_packages``.

A new machine has Python and pip only, so pip installs uv (by the hashes of the same lock) and uv the rest.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from tooling.steps import BUILD, ROOT, VENV, VENV_BIN, StepFailed, exclusively, run, say

LOCK: Final = ROOT / "requirements" / "dev.txt"
_REMEDY: Final = """\
Missing: the Python packages named in requirements/dev.txt.
They come from the Python package index that pip and uv are configured for. Check that this machine reaches it, then run
`make setup` again. Behind a mirror set PIP_INDEX_URL and UV_DEFAULT_INDEX to it; behind a proxy that re-signs TLS set
SSL_CERT_FILE and PIP_CERT to its certificates. A hash mismatch means the index serves other files than were locked."""


def locked_entry(lock: str, package: str) -> str:
    """Cut one package with its hashes out of a lock's text.

    Raises:
        StepFailed: the lock does not name the package.
    """
    lines = iter(lock.splitlines())
    for line in lines:
        if not line.startswith(f"{package}=="):
            continue
        entry = [line]
        while entry[-1].endswith("\\"):
            entry.append(next(lines))
        return "\n".join(entry) + "\n"
    raise StepFailed(f"{LOCK.name} does not lock {package}.", "Run `make lock` where the registries are reachable.")


def install() -> None:
    """Bring ``.venv`` to what the lock says. Repeating it is quick and changes nothing."""
    if not (VENV_BIN / "python").exists():
        say("creating .venv")
        run(
            [sys.executable, "-m", "venv", VENV],
            problem="Python could not create a virtual environment.",
            remedy="Missing: Python's venv module. On Debian and Ubuntu it is the package python3-venv.",
        )
    uv = VENV_BIN / "uv"
    if not uv.exists():
        say("installing uv")
        entry = BUILD / "uv.txt"
        entry.write_text(locked_entry(LOCK.read_text(), "uv"))
        pip: list[str | Path] = [VENV_BIN / "python", "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
        run([*pip, "--require-hashes", "-r", entry], problem="pip could not install uv.", remedy=_REMEDY)
    say("installing the Python packages of requirements/dev.txt")
    run(
        [uv, "pip", "install", "--quiet", "--python", VENV_BIN / "python", "--require-hashes", "-r", LOCK],
        problem="uv could not install the Python packages.",
        remedy=_REMEDY,
    )


if __name__ == "__main__":
    with exclusively("python"):
        install()
