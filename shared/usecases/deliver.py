"""Deliver: carry out what commits have staged, in order, at least once; every message is harmless twice."""

from datetime import timedelta
from functools import singledispatch
from typing import Final

from shared.domain.change import timer_of
from shared.domain.errors import InvariantBroken
from shared.domain.identity import TaskKey
from shared.domain.outbox import (
    AnswerParent,
    AnswerWait,
    ArmTimer,
    DisarmTimer,
    Message,
    OutboxRow,
    PublishEvent,
    StartExecution,
)
from shared.domain.wait import Wait, WaitStatus
from shared.usecases.engine import DeliverDeps

# A machine is in a wait moments after the commit that opened it, and minutes after if its services fail meanwhile.
ENTERED_WITHIN: Final = timedelta(minutes=15)


def deliver(row: OutboxRow, deps: DeliverDeps) -> None:
    """Deliver every message of one commit, then remove the row.

    Raises:
        Retry: a message could not be delivered now; the row stays and comes again.
        InvariantBroken: a message can never be delivered; the row stays for the operators.

    If killed here:
        The row is still there and is delivered again from its first message.
    """
    delivery = _Delivery(row.key, deps)
    for message in sorted(row.messages, key=_turn):
        _deliver(message, delivery)
    deps.outbox.remove(row)


def _turn(message: Message) -> int:
    """Timers after answers: one that cannot be set now must not keep an answer from whoever waits for it.

    What is published comes last, so that the one look at a wait that follows its timer serves the prompt as well.
    """
    if isinstance(message, PublishEvent):
        return 2
    return 1 if isinstance(message, ArmTimer | DisarmTimer) else 0


class _Delivery:
    """One row on its way: its task, what it is delivered with, and each wait as it was when it was first looked at."""

    def __init__(self, key: TaskKey, deps: DeliverDeps) -> None:
        self.key: Final = key
        self.deps: Final = deps
        self._seen: dict[str, Wait | None] = {}

    def wait(self, wait_id: str, correlation_id: str) -> Wait | None:
        """Return the wait as it is stored; it is read at most once."""
        if correlation_id not in self._seen:
            self._seen[correlation_id] = self.deps.waits.get(self.key.tenant, correlation_id)
        wait = self._seen[correlation_id]
        return wait if wait is not None and wait.wait_id == wait_id else None

    def open_wait(self, wait_id: str, correlation_id: str) -> Wait | None:
        """Return the wait if it is open."""
        wait = self.wait(wait_id, correlation_id)
        return wait if wait is not None and wait.status is WaitStatus.OPEN else None


@singledispatch
def _deliver(message: Message, on: _Delivery) -> None:  # noqa: ARG001 - the implementations use it
    msg = f"no such message: {message!r}"
    raise TypeError(msg)


@_deliver.register
def _(message: StartExecution, on: _Delivery) -> None:
    on.deps.executions.start(on.key, workflow=message.workflow, run=message.run, version=message.version)


@_deliver.register
def _(message: AnswerWait, on: _Delivery) -> None:
    token = on.deps.tokens.get(on.key.tenant, message.wait_id)
    if token is not None:
        on.deps.executions.answer(token, wait_id=message.wait_id)
        return
    # The machine has not reached this wait; `open_wait` will see that it is settled. It had its time to, though.
    wait = on.wait(message.wait_id, message.correlation_id)
    if wait is not None and wait.settled_at is not None and wait.settled_at - wait.opened_at >= ENTERED_WITHIN:
        on.deps.alarm(f"no token for {message.wait_id} of {on.key.task_id}: its execution may wait on; stop it")


@_deliver.register
def _(message: AnswerParent, on: _Delivery) -> None:
    wait = on.deps.waits.get(on.key.tenant, message.child)
    token = None if wait is None else on.deps.tokens.get(on.key.tenant, wait.wait_id)
    if wait is not None and token is not None:
        # Without one the parent's machine has not reached the wait; `open_wait` will see that the child has ended.
        on.deps.executions.answer(token, wait_id=wait.wait_id)


@_deliver.register
def _(message: ArmTimer, on: _Delivery) -> None:
    try:
        on.deps.timers.arm(on.key, message)
        _set_right(message, on)
    except InvariantBroken as refused:
        # Refused for good. The wait row still owns its deadline and the sweep ends it; people have to know, though.
        on.deps.alarm(f"no timer for {message.wait_id} of {on.key.task_id}: {refused.message}")


def _set_right(armed: ArmTimer, on: _Delivery) -> None:
    """Look at the wait after its timer was set: a message that came again late has set the timer of an earlier rung.

    Whoever moves the wait commits first and sets its timer then. With consistent reads one of the two sees the other.
    """
    wait = on.open_wait(armed.wait_id, armed.correlation_id)
    if wait is None:
        on.deps.timers.disarm(on.key, armed.wait_id)
    elif wait.rung != armed.rung:
        on.deps.timers.arm(on.key, timer_of(wait))


@_deliver.register
def _(message: DisarmTimer, on: _Delivery) -> None:
    try:
        on.deps.timers.disarm(on.key, message.wait_id)
    except InvariantBroken as refused:
        # Refused for good. When it goes off it finds its wait settled, and does nothing.
        on.deps.alarm(f"the timer of {message.wait_id} of {on.key.task_id} stays: {refused.message}")


@_deliver.register
def _(message: PublishEvent, on: _Delivery) -> None:
    if message.correlation_id is not None and on.open_wait(message.wait_id or "", message.correlation_id) is None:
        # A prompt that was held up until its wait had ended: nobody is asked what is already answered (B72).
        return
    on.deps.events.publish(on.key, message)
