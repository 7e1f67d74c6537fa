"""A task's whole stored history, read without the code under test."""

from dataclasses import dataclass
from functools import lru_cache

from shared.domain.action import Action
from shared.domain.checkpoint import Checkpoint, decode_checkpoint, head_columns
from shared.domain.identity import TaskKey
from shared.domain.seal import SealedCheckpoint, seal_input
from shared.ports.task_records import Head
from tests.fakes.store import World


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Every checkpoint of a task in order, and what its head says."""

    head: Head
    checkpoints: tuple[Checkpoint, ...]

    @property
    def key(self) -> TaskKey:
        """The task's key."""
        return self.head.key

    @property
    def last(self) -> Checkpoint:
        """The task as it stands."""
        return self.checkpoints[-1]

    @property
    def actions(self) -> dict[str, Action]:
        """Every action that was ever decided, as it was last recorded."""
        return {action.operation: action for task in self.checkpoints for action in task.execution.actions}


# Tellings of one story store the same bodies again and again, and reading them is most of the work of looking.
@lru_cache(maxsize=4_096)
def read_body(body: str) -> Checkpoint:
    """Read a stored body."""
    return decode_checkpoint(body)


@lru_cache(maxsize=4_096)
def columns_of(body: str) -> dict[str, str | int]:
    """The columns that the head has to show for a stored body."""
    return head_columns(read_body(body))


@lru_cache(maxsize=4_096)
def mac_input(key: str, sealed: SealedCheckpoint, previous_seal: str) -> bytes:
    """What the seal of a stored body has to cover, after the seal before it."""
    tenant, _, task_id = key.partition("#")
    return seal_input(
        TaskKey(tenant=tenant, task_id=task_id),
        version=sealed.version,
        schema_version=read_body(sealed.body).schema_version,
        key_id=sealed.key_id,
        previous_seal=previous_seal,
        body=sealed.body,
    )


def histories(world: World) -> list[History]:
    """Read every task's history."""
    return [
        History(
            head=head,
            checkpoints=tuple(
                read_body(sealed.body)
                for (task, _), sealed in sorted(world.checkpoints.items())
                if task == head.key.key
            ),
        )
        for head in world.heads.values()
    ]
