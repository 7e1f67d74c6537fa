"""Which deployment this is, and every name that follows from it.

The engine's stack finds the data stack's resources by these names, so the two can be deployed, rolled back
and deleted apart: no value is exported from one to the other.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from constructs import Node

# A bucket's name holds stage, word, account and region in 63 characters; this is what is left for the stage.
STAGE_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,14}[a-z0-9]")

# Only these may be thrown away with everything in them. Any other name is somebody's production.
DISPOSABLE_STAGES: Final = frozenset({"dev", "local"})


class Target(StrEnum):
    """Where the functions will run, which decides interpreter, architecture and wheels."""

    CLOUD = "cloud"
    HOST = "host"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One deployment of Holdfast in an account and region."""

    name: str
    target: Target
    with_sandbox: bool

    def __post_init__(self) -> None:
        """Refuse a name that would not fit into the names made from it."""
        if not STAGE_NAME.fullmatch(self.name):
            message = (
                f"stage {self.name!r} must be 2 to 16 lower-case letters, digits or hyphens and start with a letter"
            )
            raise ValueError(message)

    @classmethod
    def from_context(cls, node: Node) -> "Stage":
        """Read `stage`, `target` and `sandbox` from the CDK context (`-c name=value` or cdk.json).

        Raises:
            ValueError: a value is not one of those allowed; nothing is synthesised.
        """
        return cls(
            name=str(node.try_get_context("stage") or "dev"),
            target=Target(str(node.try_get_context("target") or Target.CLOUD)),
            with_sandbox=is_true(node.try_get_context("sandbox")),
        )

    @property
    def is_disposable(self) -> bool:
        """Whether deleting the stacks may delete the data."""
        return self.name in DISPOSABLE_STAGES

    @property
    def empties_buckets(self) -> bool:
        """Whether deleting the stacks also deletes what is in the buckets; the local AWS is thrown away as a whole."""
        return self.is_disposable and self.name != "local"

    def stack(self, part: str) -> str:
        """Name of one of this stage's stacks."""
        return f"Holdfast-{self.name}-{part}"

    def named(self, what: str) -> str:
        """Physical name of a resource that others find by name."""
        return f"holdfast-{self.name}-{what}"

    def bucket(self, what: str, *, account: str, region: str) -> str:
        """Name of a bucket; account and region make it unique in the world."""
        return f"{self.named(what)}-{account}-{region}"

    def parameter(self, name: str) -> str:
        """SSM parameter that holds what has no name of its own (a stream, a key)."""
        return f"/holdfast/{self.name}/{name}"


def is_true(value: object) -> bool:
    """Read a context flag: cdk.json gives booleans, the command line gives words."""
    return str(value).lower() == "true"
