"""Out of quarantine: a new version made from one that is intact, or an end that names what is open.

A record that is not trusted is not made trusted by a flag. The new version says which one it follows, and everything
that people had decided before is asked again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from shared.domain.action import SETTLED, ActionRow, ActionStatus, EffectClass
from shared.domain.change import (
    Change,
    Ground,
    Reason,
    begin,
    move_to,
    publish,
    set_execution,
    settle_waits,
    start_run,
    void_approvals,
)
from shared.domain.checkpoint import Checkpoint
from shared.domain.child import tell_parent
from shared.domain.compensation import not_undone
from shared.domain.outbox import AnswerWait
from shared.domain.status import Status
from shared.domain.steps import take
from shared.domain.wait import PendingWait, Wait, WaitKind, WaitSettlement, WaitStatus
from shared.domain.workflow import Finish

# As much as the record keeps of an outcome, and of why a person has to look.
OUTCOME_CHARACTERS_MAX: Final = 500
HOLD_CHARACTERS_MAX: Final = 300
# What fits into an outcome with its idempotency keys; the ledger has the rest.
NAMED_MAX: Final = 3


def review_wait_id(task_id: str, version: int) -> str:
    """Name the review that a quarantine at this version owes; it is found by the same name."""
    return f"qua-{task_id}-{version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the stores hold beside an intact version of a quarantined task.

    `rows` is the task's whole ledger. `opened` are waits that were opened at or after the version's instant, `own` are
    the rows of the waits that the version has open; one that is missing was lost. `newest` is the newest version under
    which anything is stored, and `review` the wait that the quarantine opened. `said` is what later versions say of
    themselves: they are not trusted, so it counts against going on and never for it.
    """

    task: Checkpoint
    newest: int
    rows: tuple[ActionRow, ...]
    opened: tuple[Wait, ...]
    own: tuple[Wait, ...]
    review: Wait | None
    said: tuple[str, ...] = ()

    @property
    def later_rows(self) -> tuple[ActionRow, ...]:
        """The ledger's rows that the version knows nothing of, or that a later version took back."""
        open_here = {a.operation for a in self.task.execution.actions if a.status not in SETTLED}
        return tuple(
            row
            for row in self.rows
            if row.version > self.task.version or (row.operation in open_here and row.status is ActionStatus.VOID)
        )

    @property
    def later_waits(self) -> tuple[Wait, ...]:
        """The waits that a later version opened. The review of a quarantine is none: it belongs to no version."""
        return tuple(w for w in self.opened if w.version > self.task.version and not _is_review_of_quarantine(w))

    @property
    def answered_waits(self) -> tuple[PendingWait, ...]:
        """The waits that the version has open and that have ended since."""
        still_open = {wait.wait_id for wait in self.own if wait.status is WaitStatus.OPEN}
        return tuple(wait for wait in self.task.execution.waits if wait.wait_id not in still_open)

    @property
    def younger(self) -> tuple[str, ...]:
        """Say what happened after the version, for whoever wanted to go on from it."""
        return (
            *(f"{row.operation} ({row.status})" for row in self.later_rows),
            *(f"wait {wait.name} opened by version {wait.version} ({wait.status})" for wait in self.later_waits),
            *(f"wait {wait.name} has ended since" for wait in self.answered_waits),
            *self.said,
        )


def released(found: Found, ground: Ground, *, head_run: int, by: str, because: str | Reason) -> Change:
    """Make the version that takes a task out of quarantine; its next wake-up passes every gate.

    It gets an execution of its own: what the one before it did, and whether it lives, is part of what is not trusted.
    Open questions and approvals are void, so that people are asked again. A task that had ended has ended as before.

    Args:
        head_run: the run that the distrusted head names.
    """
    task = found.task
    change = _with_review_ended(_following(found, ground, because), found)
    change = publish(change, "task.operated", command="release", by=by)
    if task.closed:
        return tell_parent(change)
    change = move_to(change, status=Status.RESUME_VALIDATION, stage=task.business.stage, ground=ground)
    change = void_approvals(settle_waits(change, WaitStatus.VOID))
    if task.business.status is Status.NEEDS_REVIEW:
        # Whoever trusts the record again has not answered what the review was about.
        change = set_execution(change, hold=task.business.because[:HOLD_CHARACTERS_MAX])
    return start_run(change, max(task.execution.run, head_run) + 1)


def closed(found: Found, ground: Ground, *, by: str, because: str | Reason) -> Change:
    """Make the version that ends a quarantined task as failed, naming everything that is open.

    What the ledger says has not left is taken back; the commit fails if somebody claims it meanwhile.
    """
    change = _following(found, ground, because)
    unsent = [row.operation for row in found.rows if row.status is ActionStatus.INTENT]
    ended = {wait.wait_id for wait in found.answered_waits}
    open_here = tuple(wait for wait in change.task.execution.waits if wait.wait_id not in ended)
    actions = tuple(a for a in change.task.execution.actions if a.operation not in unsent)
    change = set_execution(change, waits=open_here, actions=actions, hold=None)
    change = replace(change, withdrawn=(*change.withdrawn, *unsent))
    change = _with_waits_ended(change, (w for w in found.later_waits if w.status is WaitStatus.OPEN))
    change = _with_review_ended(change, found)
    left = (*not_undone(found.task, ground.workflow), *_open_or_unheard_of(found))
    outcome = f"closed out of quarantine; {f'open: {named(left)}' if left else 'nothing is open'}"
    end = Finish(stage=found.task.business.stage, status=Status.FAILED, outcome=outcome[:OUTCOME_CHARACTERS_MAX])
    return publish(take(end, change, ground), "task.operated", command="close", by=by)


def named(things: Sequence[str]) -> str:
    """Name the first few of many, and say how many more there are."""
    more = len(things) - NAMED_MAX
    return "; ".join(things[:NAMED_MAX]) + (f" and {more} more" if more > 0 else "")


def _open_or_unheard_of(found: Found) -> tuple[str, ...]:
    """What nobody knows the outcome of, and what has happened or was begun and the version knows nothing of."""
    known = {a.operation for a in found.task.execution.actions if a.status is ActionStatus.DONE}
    effects = tuple(
        f"{row.operation} ({row.status})"
        for row in found.rows
        if row.effect is not EffectClass.READ
        and (
            row.status in {ActionStatus.IN_FLIGHT, ActionStatus.OUTCOME_UNKNOWN}
            or (row.status is ActionStatus.DONE and row.operation not in known)
        )
    )
    children = tuple(f"task {w.correlation_id} ({w.name})" for w in found.later_waits if w.kind is WaitKind.CHILD)
    return effects + children


def _following(found: Found, ground: Ground, because: str | Reason) -> Change:
    """Begin the version after everything that is stored, made from the intact one."""
    change = begin(found.task, because=because, ground=ground)
    version = found.newest + 1
    skips = version != found.task.version + 1
    task = change.task.model_copy(update={"version": version, "follows": found.task.version if skips else None})
    return replace(change, task=task, before=Status.QUARANTINED)


def _with_review_ended(change: Change, found: Found) -> Change:
    review = () if found.review is None or found.review.status is not WaitStatus.OPEN else (found.review,)
    return _with_waits_ended(change, review, status=WaitStatus.SETTLED)


def _with_waits_ended(change: Change, waits: Iterable[Wait], *, status: WaitStatus = WaitStatus.VOID) -> Change:
    """End waits that the record does not have, and wake whoever waits for them."""
    ended = tuple(waits)
    settled = tuple(
        WaitSettlement(tenant=w.tenant, correlation_id=w.correlation_id, wait_id=w.wait_id, status=status)
        for w in ended
    )
    answers = tuple(
        AnswerWait(wait_id=w.wait_id, correlation_id=w.correlation_id, version=change.task.version) for w in ended
    )
    return replace(change, settled=(*change.settled, *settled), messages=(*change.messages, *answers))


def _is_review_of_quarantine(wait: Wait) -> bool:
    return wait.wait_id == review_wait_id(wait.task_id, wait.version)
