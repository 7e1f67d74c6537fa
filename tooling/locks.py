"""Resolve the locks again: ``python -m tooling.locks``. Needs the registries; everything else works from the locks."""

from __future__ import annotations

import json
from typing import Final

from tooling.steps import ROOT, VENV_BIN, StepFailed, exclusively, run, say

REQUIREMENTS: Final = ROOT / "requirements"

# The Lambda runtime brings boto3 and with it these; a second copy in the layer would only slow imports down.
IN_THE_LAMBDA_RUNTIME: Final = ("boto3", "botocore", "jmespath", "python-dateutil", "s3transfer", "six", "urllib3")

_COMPILE: Final = (
    "pip", "compile", "--quiet", "--universal", "--python-version", "3.11", "--generate-hashes",
    "--no-emit-index-url", "--no-emit-find-links", "--no-header", "--no-annotate",
)  # fmt: skip
_REMEDY: Final = "The registries must be reachable, and pyproject.toml and package.json must agree with themselves."


def lock_python() -> None:
    """Write both Python locks; the runtime's versions are those that the tests run with."""
    say("locking the Python packages")
    uv, project = VENV_BIN / "uv", ROOT / "pyproject.toml"
    everything, runtime = REQUIREMENTS / "dev.txt", REQUIREMENTS / "runtime.txt"
    run([uv, *_COMPILE, project, "--group", "dev", "-o", everything], problem="uv found no resolution.", remedy=_REMEDY)
    left_out = [word for package in IN_THE_LAMBDA_RUNTIME for word in ("--no-emit-package", package)]
    run(
        [uv, *_COMPILE, project, "--constraint", everything, *left_out, "-o", runtime],
        problem="uv found no resolution for the runtime.",
        remedy=_REMEDY,
    )


def lock_node() -> None:
    """Write the npm lock and keep every address out of it, so that it works with any registry.

    Raises:
        StepFailed: npm recorded where it fetched a package from.
    """
    say("locking the npm packages")
    run(
        [VENV_BIN / "npm", "install", "--package-lock-only", "--ignore-scripts", "--no-audit", "--loglevel=error"],
        problem="npm found no resolution.",
        remedy=_REMEDY,
    )
    path = ROOT / "package-lock.json"
    lock = json.loads(path.read_text())
    packages = lock["packages"]
    for entry in packages.values():
        entry.pop("funding", None)
    path.write_text(json.dumps(lock, indent=2) + "\n")
    addressed = sorted(name for name, entry in packages.items() if "resolved" in entry)
    if addressed:
        raise StepFailed(f"package-lock.json records addresses for {', '.join(addressed)}.", "See .npmrc.")


if __name__ == "__main__":
    with exclusively("locks"):
        lock_python()
        lock_node()
