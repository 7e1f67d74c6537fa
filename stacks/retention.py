"""Retention against waiting: nothing that a task may still need is purged before the longest legal task is over."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from shared.domain.steps import REVIEW_WAIT
from shared.domain.workflow import Workflow
from shared.usecases.open_wait import TOKEN_KEPT
from shared.usecases.receive_event import EARLY_KEPT
from shared.usecases.start_task import START_KEY_KEPT

# A review's ladder counts from its opening, whenever that is.
_ANY_DAY: Final = datetime(2026, 1, 1, tzinfo=UTC)


def longest_task(workflows: Iterable[Workflow]) -> timedelta:
    """How long a task may live: the longest deadline of a workflow, and a review that nobody answers."""
    review = REVIEW_WAIT.deadline_at(_ANY_DAY) - _ANY_DAY
    return max(workflow.task_deadline for workflow in workflows) + review


def require_retention(workflows: Iterable[Workflow]) -> None:
    """Refuse to synthesise stacks whose rows would be purged under a task that may still need them.

    The ledger, the checkpoints, the heads and the waits are never purged; `tests/infrastructure` holds them to that.

    Raises:
        ValueError: names each retention that is too short, and what it would take.
    """
    needed = longest_task(workflows)
    kept = {"START_KEY_KEPT": START_KEY_KEPT, "EARLY_KEPT": EARLY_KEPT, "TOKEN_KEPT": TOKEN_KEPT}
    short = [f"{name} is {life.days} days" for name, life in kept.items() if life < needed]
    if short:
        msg = f"a task may live for {needed.days} days: {', '.join(short)}"
        raise ValueError(msg)
