"""What the functions run on, for each target."""

import platform
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aws_cdk import IgnoreMode
from aws_cdk import aws_lambda as lambda_

from stacks.stage import Target

REPOSITORY: Final = Path(__file__).resolve().parent.parent

# `make setup` installs the locked wheels of each target here, so that synthesis needs no network and no Docker.
DEPENDENCIES: Final = REPOSITORY / ".build" / "dependencies"

# Kept out of every bundle: what the interpreter makes and what only tests read.
NOT_DEPLOYED: Final = ("**/__pycache__", "**/*.py[cod]", "**/tests", "**/.lock", "**/.DS_Store")


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeTarget:
    """Interpreter, architecture, code and dependencies that belong together."""

    runtime: lambda_.Runtime
    architecture: lambda_.Architecture
    dependencies: Path

    @classmethod
    def of(cls, target: Target) -> "RuntimeTarget":
        """Choose for the cloud, or for the machine that synthesises (the local AWS runs functions on it)."""
        if target is Target.CLOUD:
            return cls(
                runtime=lambda_.Runtime.PYTHON_3_13,
                architecture=lambda_.Architecture.ARM_64,
                dependencies=DEPENDENCIES / target,
            )
        is_arm = platform.machine().lower() in {"arm64", "aarch64"}
        return cls(
            runtime=lambda_.Runtime(
                f"python{sys.version_info.major}.{sys.version_info.minor}", lambda_.RuntimeFamily.PYTHON
            ),
            architecture=lambda_.Architecture.ARM_64 if is_arm else lambda_.Architecture.X86_64,
            dependencies=DEPENDENCIES / target,
        )


def packages(*names: str) -> lambda_.Code:
    """Bundle top-level packages of the repository, data files included, as they lie."""
    return lambda_.Code.from_asset(
        str(REPOSITORY),
        ignore_mode=IgnoreMode.GIT,
        exclude=["/*", *(f"!/{name}" for name in names), *NOT_DEPLOYED],
    )


def dependency_code(target: RuntimeTarget) -> lambda_.Code:
    """Bundle the installed dependencies of a target.

    Raises:
        FileNotFoundError: they have not been installed yet.
    """
    if not (target.dependencies / "python").is_dir():
        message = f"{target.dependencies.relative_to(REPOSITORY)} is missing: run `make setup` first"
        raise FileNotFoundError(message)
    return lambda_.Code.from_asset(str(target.dependencies), ignore_mode=IgnoreMode.GIT, exclude=[*NOT_DEPLOYED])
