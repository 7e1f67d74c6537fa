"""Quarantine: mark a task whose stored state cannot be trusted, and put it before a person."""

from shared.domain.events import detail_of, schema_version_of
from shared.domain.identity import TaskKey
from shared.domain.outbox import PublishEvent
from shared.domain.release import review_wait_id
from shared.domain.steps import REVIEW_WAIT
from shared.domain.wait import Wait, WaitKind
from shared.usecases.engine import Records


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
    alarm = PublishEvent(
        event="task.quarantined",
        schema_version=schema_version_of("task.quarantined"),
        version=version,
        detail=detail_of("task.quarantined", {"reason": reason[:300]}),
    )
    tasks.records.quarantine(key, version=version, reason=reason, review=review, messages=(alarm,), now=now)
    return review
