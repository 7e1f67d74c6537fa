"""Open a wait for the machine: store its task token, and only then look whether the wait is settled already.

Whoever settles a wait, or ends a child task that is waited for, commits first and then looks for the token. With
consistent reads one of the two sees the other, so no wake-up is lost; if both do, the second answer to the same token
is harmless.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from shared.domain.identity import TaskKey
from shared.domain.wait import Wait, WaitKind, WaitStatus
from shared.usecases.engine import OpenWaitDeps

# An execution hands over to the next run long before this many passes of its hub.
_HOPS_PER_RUN: Final = 1_000_000
# A token is useless once its execution is gone, and Step Functions keeps none longer than a year.
TOKEN_KEPT: Final = timedelta(days=366)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenWait:
    """The waiting state's own request. `run` and `hops` say when its execution entered it, among all that ever were."""

    key: TaskKey
    wait_id: str
    correlation_id: str
    token: str
    run: int
    hops: int

    @property
    def entry(self) -> int:
        """Where this entry into a waiting state stands in the order of all of them."""
        return self.run * _HOPS_PER_RUN + self.hops


def open_wait(command: OpenWait, deps: OpenWaitDeps) -> bool:
    """Attach the token; answer it at once if there is nothing left to wait for.

    Returns:
        Whether the token was answered here.

    If killed here:
        With the token stored, `deliver` will find it; without it the state fails and the machine wakes again.
    """
    now = deps.clock.now()
    deps.tokens.put(command.key.tenant, command.wait_id, command.token, entry=command.entry, purge_at=now + TOKEN_KEPT)
    wait = deps.waits.get(command.key.tenant, command.correlation_id)
    waits_still = (
        wait is not None
        and wait.wait_id == command.wait_id
        and wait.task_id == command.key.task_id
        and wait.status is WaitStatus.OPEN
    )
    if waits_still and not _has_come(wait, deps):
        return False
    return deps.executions.answer(command.token, wait_id=command.wait_id)


def _has_come(wait: Wait | None, deps: OpenWaitDeps) -> bool:
    """Whether a child task that is waited for has ended: the wait is settled by whoever reads the child's record."""
    if wait is None or wait.kind is not WaitKind.CHILD:
        return False
    return deps.tasks.has_ended(TaskKey(tenant=wait.tenant, task_id=wait.correlation_id))
