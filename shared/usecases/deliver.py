"""Deliver: carry out what commits have staged, in order, at least once; every message is harmless twice."""

from functools import singledispatch

from shared.domain.errors import InvariantBroken
from shared.domain.identity import TaskKey
from shared.domain.outbox import (
    AnswerWait,
    ArmTimer,
    DisarmTimer,
    Message,
    OutboxRow,
    PublishEvent,
    StartExecution,
)
from shared.domain.wait import WaitStatus
from shared.usecases.engine import DeliverDeps


def deliver(row: OutboxRow, deps: DeliverDeps) -> None:
    """Deliver every message of one commit, then remove the row.

    Raises:
        Retry: a message could not be delivered now; the row stays and comes again.
        InvariantBroken: a message can never be delivered; the row stays for the operators.

    If killed here:
        The row is still there and is delivered again from its first message.
    """
    # Timers last: one that cannot be set now must not keep an answer from a person who waits for it.
    for message in sorted(row.messages, key=lambda m: isinstance(m, ArmTimer | DisarmTimer)):
        _deliver(message, row.key, deps)
    deps.outbox.remove(row)


@singledispatch
def _deliver(message: Message, key: TaskKey, deps: DeliverDeps) -> None:  # noqa: ARG001 - the implementations use them
    msg = f"no such message: {message!r}"
    raise TypeError(msg)


@_deliver.register
def _(message: StartExecution, key: TaskKey, deps: DeliverDeps) -> None:
    deps.executions.start(key, workflow=message.workflow, run=message.run, version=message.version)


@_deliver.register
def _(message: AnswerWait, key: TaskKey, deps: DeliverDeps) -> None:
    token = deps.tokens.get(key.tenant, message.wait_id)
    if token is None:
        # The machine has not reached this wait; `open_wait` will see that it is settled.
        return
    deps.executions.answer(token, wait_id=message.wait_id)


@_deliver.register
def _(message: ArmTimer, key: TaskKey, deps: DeliverDeps) -> None:
    try:
        deps.timers.arm(key, message)
    except InvariantBroken as refused:
        # Refused for good. The wait row still owns its deadline and the sweep ends it; people have to know, though.
        deps.alarm(f"no timer for {message.wait_id} of {key.task_id}: {refused.message}")


@_deliver.register
def _(message: DisarmTimer, key: TaskKey, deps: DeliverDeps) -> None:
    deps.timers.disarm(key, message.wait_id)


@_deliver.register
def _(message: PublishEvent, key: TaskKey, deps: DeliverDeps) -> None:
    if message.correlation_id is not None and not _is_open(message, key, deps):
        # A prompt that was held up until its wait had ended: nobody is asked what is already answered (B72).
        return
    deps.events.publish(key, message)


def _is_open(prompt: PublishEvent, key: TaskKey, deps: DeliverDeps) -> bool:
    wait = deps.waits.get(key.tenant, prompt.correlation_id or "")
    return wait is not None and wait.wait_id == prompt.wait_id and wait.status is WaitStatus.OPEN
