"""Migrations: how a checkpoint written by an earlier release is read by this one.

A release that changes the form of the checkpoint raises `SCHEMA_VERSION`, adds the step from the version before, and
keeps a stored sample of that version under `tests/fixtures/checkpoints/`. A version without a way here, or one from a
later release, is quarantined and never guessed.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from shared.domain.checkpoint import SCHEMA_VERSION

Migration: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]

# From a schema version to the next. The first release has nothing behind it.
MIGRATIONS: Final[Mapping[int, Migration]] = {}


def migrate(
    body: dict[str, Any], *, to: int = SCHEMA_VERSION, steps: Mapping[int, Migration] = MIGRATIONS
) -> dict[str, Any]:
    """Return a stored body in the form of a schema version, step by step; one of that version is returned as it is.

    Raises:
        ValueError: there is no way from the stored version; nothing is guessed.
    """
    version = body.get("schema_version")
    if type(version) is not int:
        msg = "the checkpoint names no schema version"
        raise ValueError(msg)
    while version < to:
        step = steps.get(version)
        if step is None:
            msg = f"checkpoint schema {version} cannot be migrated by this release"
            raise ValueError(msg)
        body = {**step(body), "schema_version": version + 1}
        version += 1
    if version > to:
        msg = f"checkpoint schema {str(version)[:12]} is not one this release understands"
        raise ValueError(msg)
    return body
