"""The task's authoritative records: head and checkpoints, and the one commit that changes them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from shared.domain.action import ActionRow
from shared.domain.identity import TaskKey
from shared.domain.outbox import Message
from shared.domain.seal import SealedCheckpoint
from shared.domain.wait import Wait, WaitSettlement
from shared.ports.inbox import InboxRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The high-water mark of a task, kept apart from its checkpoints and written by commits alone.

    `columns` are the indexed copies of sealed fields. `quarantine` is the reason if the task is quarantined outside
    a checkpoint, because the checkpoint itself cannot be trusted.
    """

    key: TaskKey
    version: int
    attempt_id: str
    columns: dict[str, str | int]
    quarantine: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What is stored for a task: its head and the checkpoint that the head points to, if that is there."""

    head: Head
    checkpoint: SealedCheckpoint | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """Everything that belongs together; written as one transaction with a condition on every item, or not at all.

    `previous` is the version that this commit follows, None for a new task. `lease_fence` is the lease this attempt
    works under; the commit releases it. `withdrawn` are operations whose intent is taken back before anything was sent.
    `climbed` are open waits as they are after one more rung; the stored one has to be open and one rung below.
    """

    attempt_id: str
    key: TaskKey
    previous: int | None
    checkpoint: SealedCheckpoint
    columns: dict[str, str | int]
    now: datetime
    inbox: InboxRow | None = None
    opened: tuple[Wait, ...] = ()
    settled: tuple[WaitSettlement, ...] = ()
    climbed: tuple[Wait, ...] = ()
    intents: tuple[ActionRow, ...] = ()
    withdrawn: tuple[str, ...] = ()
    messages: tuple[Message, ...] = ()
    lease_fence: int | None = None
    # Commits of child tasks, of new ones or of such as are told to stop, that stand or fall with this one.
    children: tuple["Commit", ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueEntry:
    """One line of the operator's queue. From an index, so it may be behind: never decide anything from it."""

    task_id: str
    workflow: str
    status: str
    stage: str
    owner: str
    since: str
    due_at: str | None
    # Why a person has to look, where one has to.
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePage:
    """A page of the queue, oldest first, and the cursor of the next."""

    entries: tuple[QueueEntry, ...]
    cursor: str | None


class TaskRecords(Protocol):
    """Heads and checkpoints. Reads are strongly consistent unless the method says otherwise."""

    def load(self, key: TaskKey, *, version_hint: int | None = None) -> Stored | None:
        """Read the head and the checkpoint it points to. A right hint makes it one call; a wrong one costs a second.

        Returns:
            None if the tenant has no such task.
        """

    def commit(self, commit: Commit) -> None:
        """Write the commit.

        Raises:
            StaleVersion: another commit came first.
            DuplicateEvent: the inbox has the event already.
            WaitSettled: a wait to settle is no longer open.
            LeaseLost: the lease has another fence.
            ActionInFlight: an intent to withdraw has been claimed meanwhile.
            InvariantBroken: an intent, wait, child task or later checkpoint exists that the head does not know of (a
                rollback).
            Throttled: conflicts or throttling outlasted the bounded backoff; nothing was written.

        If killed here:
            All of it is stored or none of it. A lost reply is recognised by `attempt_id` and counts as success.
        """

    def quarantine(
        self,
        key: TaskKey,
        *,
        version: int,
        reason: str,
        review: Wait,
        messages: tuple[Message, ...],
        now: datetime,
        remind_at: datetime,
    ) -> None:
        """Mark the head, at this version, as quarantined and open the review wait; the checkpoint stays as it is.

        Quarantining what is quarantined changes nothing. From `remind_at` on it is listed as overdue.

        Raises:
            StaleVersion: another commit came first.
        """

    def remind_of_quarantine(
        self, head: Head, *, messages: tuple[Message, ...], now: datetime, remind_at: datetime
    ) -> bool:
        """Stage messages about a task that is quarantined as `head` says, and list it as overdue from `remind_at` on.

        Returns:
            False if what was staged about it before is not delivered yet; nothing was written.

        Raises:
            StaleVersion: the task is not quarantined in this way any more.
        """

    def release(self, commit: Commit, *, quarantine: str) -> None:
        """Write the commit that takes a task out of quarantine. Nothing else lifts the mark.

        Args:
            commit: `previous` is the head's version; the checkpoint's is a later one, further on than the next where
                checkpoints lie beyond the head.
            quarantine: the reason that the head has to be quarantined for.

        Raises:
            StaleVersion: the head is at another version, is not quarantined, or is so for another reason.
            WaitSettled, ActionInFlight, InvariantBroken, Throttled: see `commit`.

        If killed here:
            All of it is stored or none of it. A lost reply is recognised by `attempt_id` and counts as success.
        """

    def has_ended(self, key: TaskKey) -> bool:
        """Whether the task's head says that it has ended. A reason to wake somebody who looks, never more than that."""

    def checkpoint(self, key: TaskKey, version: int) -> SealedCheckpoint | None:
        """Read one version as it is stored, whatever the head says. Whether to trust it is for its reader to find out.

        Returns:
            None if nothing is stored for this version.
        """

    def overdue(self, shard: str, *, before: datetime, limit: int) -> tuple[TaskKey, ...]:
        """List live tasks of a shard whose check-up is due, longest due first, from the index.

        The index may be behind in both directions: read the task before doing anything, and never read a missing
        entry as a missing task (B65).
        """

    def queue(self, tenant: str, status: str, *, limit: int, cursor: str | None = None) -> QueuePage:
        """List a tenant's tasks of one status, longest in that status first, from the index (eventually consistent).

        Raises:
            InvalidRequest: the cursor is not one of ours for this tenant and status.
        """
