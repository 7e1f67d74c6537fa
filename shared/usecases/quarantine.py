"""Quarantine: mark a task whose stored state cannot be trusted, and put it before a person."""

from datetime import timedelta
from typing import Final

from shared.domain.events import detail_of, schema_version_of
from shared.domain.identity import TaskKey
from shared.domain.instants import parse_instant
from shared.domain.outbox import PublishEvent
from shared.domain.release import review_wait_id
from shared.domain.steps import REVIEW_WAIT
from shared.domain.wait import Wait, WaitKind
from shared.ports.task_records import Head
from shared.usecases.engine import Records

# Nothing ends a quarantine by itself, so people are told of it every day.
REMIND_EVERY: Final = timedelta(days=1)


def quarantine_task(key: TaskKey, version: int, reason: str, tasks: Records) -> Wait:
    """Mark the head, open a review, touch nothing else. No step runs on what cannot be trusted.

    Returns:
        The review that is owed.

    Raises:
        StaleVersion: another commit came first; look again.

    If killed here:
        The mark, the review and the alarm are stored together or not at all. Doing it twice does it once.
    """
    now = tasks.clock.now()
    remind_at = now + REMIND_EVERY
    wait_id = review_wait_id(key.task_id, version)
    review = Wait(
        tenant=key.tenant,
        task_id=key.task_id,
        wait_id=wait_id,
        kind=WaitKind.REVIEW,
        name="quarantine",
        correlation_id=wait_id,
        request_version=1,
        version=version,
        answered_by=("operator",),
        rule=REVIEW_WAIT,
        opened_at=now,
        deadline_at=REVIEW_WAIT.deadline_at(now),
    )
    alarm = _alarm(version, reason)
    tasks.records.quarantine(
        key, version=version, reason=reason, review=review, messages=(alarm,), now=now, remind_at=remind_at
    )
    return review


def remind_of_quarantine(head: Head, tasks: Records) -> bool:
    """Alarm once more about a task that is quarantined and that nobody has released or closed since the last time.

    Returns:
        Whether it was alarmed; False if its time has not come, or the last alarm is still on its way.

    Raises:
        StaleVersion: somebody released it meanwhile.

    If killed here:
        The alarm and the instant of the next are stored together or not at all.
    """
    now = tasks.clock.now()
    due_at = head.columns.get("check_at")
    if head.quarantine is None or not isinstance(due_at, str) or now < parse_instant(due_at):
        return False
    alarm = _alarm(head.version, head.quarantine)
    return tasks.records.remind_of_quarantine(head, messages=(alarm,), now=now, remind_at=now + REMIND_EVERY)


def _alarm(version: int, reason: str) -> PublishEvent:
    return PublishEvent(
        event="task.quarantined",
        schema_version=schema_version_of("task.quarantined"),
        version=version,
        detail=detail_of("task.quarantined", {"reason": reason[:300]}),
    )
