"""How a task leaves quarantine: from an intact version that a person names, through every gate, or not at all."""

import json
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pytest

from shared.domain.action import ActionStatus, EffectClass
from shared.domain.approval import DecisionWord
from shared.domain.checkpoint import CancelScope, decode_checkpoint
from shared.domain.errors import (
    CheckpointQuarantined,
    IllegalTransition,
    NotAuthorised,
    ReleaseRefused,
    SealUnavailable,
    StaleCommand,
    StaleVersion,
    TaskClosed,
    TaskNotFound,
)
from shared.domain.identity import PrincipalRef
from shared.domain.status import Status
from shared.usecases.cancel_task import CancelTask, cancel_task
from tests.builders import sealed
from tests.fakes.calls import Calls, Fault, Killed, When
from tests.fakes.downstream import Downstream, Kind, Mishap
from tests.fakes.errand import Do, WaitFor, a_ladder, a_rule, a_tool, an_undo, run_errand
from tests.fakes.model import proposes
from tests.fakes.operating import (
    OPERATOR,
    SECOND_OPERATOR,
    close,
    forge,
    head_version,
    quarantine,
    release,
    retry,
    with_operators,
)
from tests.fakes.story import CLERK, INTERN, MANAGER, STRANGER, Story

PARCEL: Final = a_tool("send_parcel")
LETTER: Final = a_tool("send_letter")
HOLD: Final = a_tool("book_hold", undo="drop_hold")
DROP: Final = an_undo("drop_hold")


def asked(*things: Do | WaitFor, calls: Calls | None = None) -> Story:
    """Start an errand whose first call waits for its approval, at version 1."""
    first = things or (Do(tool=PARCEL, rule=a_rule()),)
    return with_operators(run_errand(*first, undos=[DROP], calls=calls or Calls()))


def sent(story: Story, tool: str = "send_parcel") -> int:
    """How often something really happened."""
    return len(story.world.downstreams[tool].effects)


def go_on(story: Story) -> Story:
    """Let the machine go on."""
    story.machine.settle()
    return story


def found_out(story: Story) -> Story:
    """Let the machine meet the record and mark it."""
    story.wake()
    assert story.status == "quarantined"
    return story


def reason_of(story: Story) -> str | None:
    """Why the head is marked, if it is."""
    return story.world.heads[story.key.key].quarantine


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_a_task_is_quarantined_by_hand() -> None:
    """O2: nothing is begun on it, the approver is told so, the queue and an event say who and why."""
    story = asked()
    before = story.task

    quarantine(story)
    go_on(story)

    assert story.status == "quarantined"
    assert reason_of(story) == "quarantined by operator-1: I looked at it"
    assert story.task == before
    assert "task.quarantined" in story.published
    with pytest.raises(CheckpointQuarantined):
        story.decide()
    with pytest.raises(IllegalTransition, match="is quarantined"):
        quarantine(story)
    assert sent(story) == 0


def test_a_call_in_flight_is_not_called_back_by_a_quarantine() -> None:
    """B19, B17: it left before; its outcome waits in the ledger and is taken in after the release, once."""
    story = asked()
    _meanwhile(story, "tool_gateway.perform", lambda: quarantine(story))
    story.decide()
    assert (story.status, story.rows[0].status) == ("quarantined", "done")

    release(story, from_version=2)
    go_on(story)

    assert (story.status, sent(story)) == ("completed", 1)


def test_an_intent_is_not_claimed_on_a_quarantined_task() -> None:
    """B19: the worker that comes for it finds the mark, and nothing leaves until the release."""
    story = asked()
    _meanwhile(story, "authority.read", lambda: None)
    story.click()
    _meanwhile(story, "task_records.load", lambda: quarantine(story))
    go_on(story)
    assert (story.status, sent(story)) == ("quarantined", 0)

    release(story, from_version=head_version(story))

    assert go_on(story).status == "completed"
    assert sent(story) == 1


def test_an_ended_task_is_not_quarantined() -> None:
    """O2: there is nothing that could be begun on it."""
    story = asked()
    story.decide()
    with pytest.raises(TaskClosed):
        quarantine(story)
    assert story.status == "completed"


def test_a_broken_record_may_be_marked_before_anybody_wakes_it() -> None:
    """R6: whoever sees it first may mark it; the operator's words become the reason."""
    story = asked(WaitFor(name="papers", ladder=a_ladder()), Do(tool=PARCEL))
    forge(story)

    quarantine(story)

    assert reason_of(story) == "quarantined by operator-1: I looked at it"


# --- release ----------------------------------------------------------------------------------------------------------


def test_a_release_asks_people_again() -> None:
    """O2, R6: a new version after the head's, the old approval void, a new execution, and every gate passed again."""
    story = asked()
    old = story.open_approval
    quarantine(story)
    quarantined = story.task

    answer = release(story, from_version=1)

    assert (answer.status, answer.version) == ("resume_validation", 2)
    assert answer.because == "released from version 1 by operator-1: I looked at it"
    assert [(a.approval_id, a.status) for a in answer.approvals] == [(old, "void")]
    go_on(story)
    assert story.status == "waiting_approval"
    assert story.open_approval != old
    assert story.task.execution.run == quarantined.execution.run + 1
    story.decide()
    assert (story.status, sent(story)) == ("completed", 1)
    assert story.machine.errors == []
    assert [run.ended for run in story.machine.runs.values()] == ["superseded", "completed"]
    assert "task.operated" in story.published


def test_an_edited_checkpoint_is_skipped_and_stays_as_evidence() -> None:
    """R6: the version before it is intact and nothing depends on what was lost; the chain says what was skipped."""
    story = _asked_twice()
    forge(story)
    forged = story.world.checkpoints[story.key.key, 3]
    found_out(story)

    with pytest.raises(StaleCommand, match="version 2 is the newest that is intact, out of 3"):
        release(story, from_version=3)
    release(story, from_version=2)

    task = story.task
    assert (task.version, task.follows) == (4, 2)
    assert task.previous_seal == story.world.checkpoints[story.key.key, 2].seal
    assert story.world.checkpoints[story.key.key, 3] == forged
    go_on(story).decide()
    assert (story.status, sent(story)) == ("completed", 1)


def _asked_twice() -> Story:
    """Bring an errand to version 3, where a model's first proposal was refused and nothing else has happened."""
    story = with_operators(run_errand(Do(tool=PARCEL, rule=a_rule(), proposed=True), calls=Calls()))
    story.world.model.answers.append(proposes("send_parcel", {"subject": 7}))
    story.click()
    while head_version(story) < 3:
        story.machine.step()
    assert (story.status, story.rows) == ("ready", [])
    return story


def test_a_release_follows_a_release() -> None:
    """B19: what was made by a release is itself something that a later one can be made from."""
    story = _asked_twice()
    forge(story)
    found_out(story)
    release(story, from_version=2)

    quarantine(story)
    release(story, from_version=4)
    assert story.task.follows is None
    go_on(story).decide()

    assert (story.status, sent(story)) == ("completed", 1)


def test_columns_that_were_edited_are_made_anew() -> None:
    """B19: the sealed record is intact and the head lied: the release takes nothing from the head but its run."""
    story = asked()
    head = story.world.heads[story.key.key]
    story.world.heads[story.key.key] = replace(head, columns=head.columns | {"owner": "somebody", "run": 7})
    found_out(story)

    release(story, from_version=1)
    go_on(story)

    assert story.world.heads[story.key.key].columns["owner"] == CLERK.key
    assert story.task.execution.run == 8
    assert story.status == "waiting_approval"


def test_a_head_that_was_put_back_does_not_hide_what_came_after() -> None:
    """B19: the newest intact version lies beyond the head; the release goes on after it, and nothing is paid twice."""
    story = asked()
    first = story.world.heads[story.key.key]
    story.decide()
    last = head_version(story)
    story.world.heads[story.key.key] = first
    quarantine(story)

    answer = release(story, from_version=last)
    go_on(story)

    assert (answer.status, answer.version) == ("completed", last + 1)
    assert (story.status, sent(story)) == ("completed", 1)


def test_a_release_is_refused_while_something_younger_is_stored() -> None:
    """B19, R6: an intent, a wait or an answer that the intact version knows nothing of: it says which."""
    story = asked()
    story.click()
    version = head_version(story)
    forge(story)
    found_out(story)
    before = (dict(story.world.heads), dict(story.world.checkpoints))

    with pytest.raises(ReleaseRefused) as refused:
        release(story, from_version=1)

    assert story.rows[0].version == version == 2
    assert f"{story.rows[0].operation} (intent)" in refused.value.message
    assert "wait approval has ended since" in refused.value.message
    assert (story.world.heads, story.world.checkpoints) == before


def test_an_amendment_that_was_lost_is_noticed() -> None:
    """R3, B19: a later wait and the end of an earlier one say so: nobody goes on with the old request."""
    story = Story()
    with_operators(story)
    story.start()
    story.amend(amount_minor=90_000)
    forge(story, old="90000", new="10000")
    found_out(story)

    with pytest.raises(ReleaseRefused) as refused:
        release(story, from_version=1)

    assert "wait approval opened by version 2 (open)" in refused.value.message


def test_an_intent_that_a_later_version_took_back_is_noticed() -> None:
    """B17: the cancel was in the version that was lost; its withdrawal is still in the ledger."""
    story = asked()
    story.click()
    cancel_task(
        CancelTask(principal=story.person(CLERK), task_id=story.key.task_id, scope=CancelScope.TASK),
        story.machine.api(),
    )
    forge(story)
    found_out(story)

    with pytest.raises(ReleaseRefused, match=r"\(void\)"):
        release(story, from_version=2)


@pytest.mark.parametrize("wish", ["cancel", "amend", "end"])
def test_a_wish_that_only_a_distrusted_version_knows_is_not_lost(wish: str) -> None:
    """B17, R3: a cancel or an amendment leaves no row while nothing was done about it; the version's word suffices."""
    story = _asked_twice()
    if wish == "cancel":
        story.ask_to_cancel()
    else:
        version, task = head_version(story) + 1, story.task
        update = {"request_version": 2} if wish == "amend" else {"status": Status.COMPLETED}
        later = task.model_copy(
            update={"version": version, "business": task.business.model_copy(update=update), "previous_seal": "x"}
        )
        story.world.checkpoints[story.key.key, version] = sealed(later)
    version = head_version(story) if wish == "cancel" else head_version(story) + 1
    forge(story, version)
    found_out(story) if wish == "cancel" else quarantine(story)

    said = {"cancel": "somebody canceled", "amend": "the request was amended", "end": "the task has ended as completed"}
    with pytest.raises(ReleaseRefused, match=f"version {version} says that {said[wish]}"):
        release(story, from_version=version - 1)


def test_nothing_intact_is_nothing_to_release() -> None:
    """R6: with the first and only version edited there is nothing to go on from; the answer points at the backup."""
    story = asked()
    forge(story)
    found_out(story)

    commands: tuple[Callable[[], object], ...] = (lambda: release(story, from_version=1), lambda: close(story))
    for command in commands:
        with pytest.raises(ReleaseRefused, match="restore it from a backup"):
            command()
    with pytest.raises(TaskNotFound):
        close(story, by=INTERN)


def test_a_version_of_a_later_release_of_the_code_is_not_gone_behind() -> None:
    """I5: an older code must not release a task from before what a newer one wrote."""
    story = _asked_twice()
    stored = story.world.checkpoints[story.key.key, 3]
    body = json.dumps(json.loads(stored.body) | {"schema_version": 99})
    story.world.checkpoints[story.key.key, 3] = stored.model_copy(update={"body": body})
    found_out(story)

    with pytest.raises(ReleaseRefused, match="later release"):
        release(story, from_version=2)


def test_a_gap_in_the_chain_is_not_built_on() -> None:
    """B19: a version whose predecessor is gone, or is another one, is not intact."""
    story = _asked_twice()
    del story.world.checkpoints[story.key.key, 2]
    quarantine(story)

    with pytest.raises(StaleCommand, match="version 1 is the newest that is intact"):
        release(story, from_version=3)


def test_a_key_service_that_cannot_be_asked_releases_nothing() -> None:
    """B19: no verdict is no trust and no distrust; come again."""
    story = asked()
    quarantine(story)
    story.world.seal_keys.unavailable = True

    with pytest.raises(SealUnavailable):
        release(story, from_version=1)

    assert story.status == "quarantined"


def test_of_two_releases_one_wins() -> None:
    """B17: both saw the same quarantine; the second is told that the task has moved on."""
    story = asked()
    quarantine(story)
    _meanwhile(story, "task_records.release", lambda: release(story, from_version=1, by=SECOND_OPERATOR))

    with pytest.raises(StaleVersion):
        release(story, from_version=1)

    assert (head_version(story), story.task.business.because) == (
        2,
        "released from version 1 by operator-2: I looked at it",
    )


def test_a_release_that_dies_is_done_or_not() -> None:
    """B11: before the commit the task is quarantined; after it the task is released, and its execution starts."""
    for when in (When.KILL_BEFORE, When.KILL_AFTER):
        story = asked()
        quarantine(story)
        story.calls.plan(Fault(when=when, at=1, name="task_records.release"))
        with pytest.raises(Killed):
            release(story, from_version=1)
        go_on(story)
        assert story.status == ("quarantined" if when is When.KILL_BEFORE else "waiting_approval")


@pytest.mark.parametrize(
    ("who", "error"),
    [(INTERN, NotAuthorised), (MANAGER, NotAuthorised), (CLERK, NotAuthorised), (STRANGER, TaskNotFound)],
)
def test_only_an_operator_of_the_tenant_releases(who: PrincipalRef, error: type[Exception]) -> None:
    """O2, A2: nobody else, the owner included; another tenant does not learn that it exists."""
    story = asked()
    quarantine(story)

    commands: tuple[Callable[[], object], ...] = (
        lambda: release(story, from_version=1, by=who),
        lambda: close(story, by=who),
        lambda: quarantine(story, by=who),
    )
    for command in commands:
        with pytest.raises(error):
            command()

    assert story.status == "quarantined"


def test_only_a_quarantined_task_is_released_or_closed() -> None:
    """O2: a task that is trusted needs neither."""
    story = asked()
    commands: tuple[Callable[[], object], ...] = (lambda: release(story, from_version=1), lambda: close(story))
    for command in commands:
        with pytest.raises(IllegalTransition, match="not quarantined"):
            command()


def test_a_command_about_an_older_head_does_nothing() -> None:
    """B78: the copy of a release finds the version that the first one made."""
    story = asked()
    quarantine(story)
    commands: tuple[Callable[[], object], ...] = (
        lambda: release(story, from_version=1, version=7),
        lambda: close(story, version=7),
    )
    for command in commands:
        with pytest.raises(StaleCommand):
            command()
    assert story.status == "quarantined"


# --- where the task was when it was quarantined -----------------------------------------------------------------------


def test_a_released_review_is_still_owed() -> None:
    """O2: trusting the record again answers nothing that the review was about."""
    story = with_operators(run_errand(Do(tool=PARCEL, rule=a_rule(), proposed=True), calls=Calls()))
    story.world.model.answers.append(proposes("send_parcel", {"subject": "somebody else's"}))
    story.decide()
    because = story.task.business.because
    assert story.status == "needs_review"

    quarantine(story)
    release(story, from_version=head_version(story))
    go_on(story)
    assert (story.status, story.task.business.because) == ("needs_review", because)

    retry(story)
    go_on(story).decide()
    assert (story.status, sent(story)) == ("completed", 1)


def test_a_released_cancellation_ends_as_canceled() -> None:
    """B17: quarantine and release do not take a cancel back."""
    story = asked(Do(tool=HOLD), Do(tool=PARCEL, rule=a_rule()))
    story.ask_to_cancel()
    quarantine(story)
    release(story, from_version=head_version(story))
    go_on(story)

    assert (story.status, sent(story, "drop_hold")) == ("canceled", 1)


def test_a_released_compensation_goes_on() -> None:
    """B28: what was being undone is undone, once."""
    story = asked(Do(tool=HOLD), Do(tool=PARCEL, rule=a_rule()))
    story.click(DecisionWord.REJECT)
    assert story.status == "compensating"
    quarantine(story)
    release(story, from_version=head_version(story))
    go_on(story)

    assert (story.status, sent(story, "drop_hold")) == ("failed", 1)


def test_a_released_doubt_is_asked_about() -> None:
    """B01: an outcome that was unknown is still unknown, and is asked about before anything is sent."""
    story = asked(Do(tool=a_tool("send_parcel", effect=EffectClass.REVERSIBLE_WRITE), rule=a_rule()))
    story.world.downstreams["send_parcel"].mishaps.append(Mishap.RECORDED_NO_ANSWER)
    story.world.downstreams["send_parcel"].kind = Kind.LOOKUP_ONLY
    _meanwhile(story, "action_ledger.settle", lambda: quarantine(story))
    story.decide()
    assert story.rows[0].status == "outcome_unknown"

    release(story, from_version=2)
    go_on(story)

    assert (story.status, sent(story)) == ("completed", 1)


def test_a_released_wait_for_an_event_waits_again_for_the_same_matter() -> None:
    """O2: the partner's own reference is waited for under a new wait; the old one is over."""
    story = asked(WaitFor(name="papers", ladder=a_ladder()))
    before = story.task.execution.waits[0]
    quarantine(story)
    release(story, from_version=1)
    go_on(story)

    after = story.task.execution.waits[0]
    assert story.status == "waiting_event"
    assert (after.correlation_id, after.wait_id == before.wait_id) == (before.correlation_id, False)


def test_an_ended_task_is_released_as_it_had_ended() -> None:
    """B19: only the head was edited; the task stays completed, under a head that is right again."""
    story = asked()
    story.decide()
    version = head_version(story)
    head = story.world.heads[story.key.key]
    story.world.heads[story.key.key] = replace(head, columns=head.columns | {"owner": "somebody"})
    found_out(story)
    with pytest.raises(TaskClosed, match="release it as it is"):
        close(story)

    answer = release(story, from_version=version)
    go_on(story)

    assert (answer.status, answer.outcome, answer.version) == ("completed", "everything is done", version + 1)
    assert story.read().status == "completed"


# --- close ------------------------------------------------------------------------------------------------------------


def test_a_task_that_cannot_be_released_is_closed_and_names_what_is_open() -> None:
    """B28, R6: the outcome says what stands, what nobody knows and what lost versions did; waits and intents end."""
    story = _lost_while_sending(Mishap.RECORDED_NO_ANSWER)
    operation = story.rows[-1].operation

    answer = close(story)
    go_on(story)

    assert answer.status == story.status == "failed"
    outcome = str(answer.outcome)
    assert outcome.startswith("closed out of quarantine; open: ")
    assert "book_hold (not undone yet)" in outcome
    assert f"{operation} (in_flight)" in outcome
    assert [w.status for w in story.world.waits.values() if w.status == "open"] == []
    assert "task.closed" in story.published
    assert [run.ended for run in story.machine.runs.values()] == ["failed"]


def test_an_intent_that_has_not_left_is_taken_back_by_closing() -> None:
    """B17: whoever was about to send it finds nothing to claim."""
    story = asked()
    story.click()
    forge(story)
    found_out(story)

    answer = close(story)

    assert (answer.status, answer.outcome) == ("failed", "closed out of quarantine; nothing is open")
    assert story.rows[0].status == "void"
    assert sent(go_on(story)) == 0


def test_an_effect_that_leaves_while_a_task_is_closed_is_not_called_unsent() -> None:
    """B17: the claim comes first, so nothing is closed; a second look names it."""
    story = asked()
    story.click()
    quarantine(story)
    row = story.rows[0]
    where = (story.key.key, row.operation)

    def claim() -> None:
        story.world.actions[where] = row.model_copy(update={"status": ActionStatus.IN_FLIGHT, "fence": 1})

    _meanwhile(story, "task_records.release", claim)
    with pytest.raises(StaleVersion):
        close(story)

    assert f"{row.operation} (in_flight)" in str(close(story).outcome)


def test_a_success_that_comes_after_closing_changes_nothing() -> None:
    """B17: the ledger learns it, the task stays as it ended."""
    story = _lost_while_sending(Mishap.RECORDED_NO_ANSWER)
    close(story)
    closed = story.task
    row = story.rows[-1]
    story.world.actions[story.key.key, row.operation] = row.model_copy(update={"status": ActionStatus.DONE})

    go_on(story)
    story.wake()

    assert story.task == closed


def _lost_while_sending(mishap: Mishap) -> Story:
    """Bring an errand to where a hold stands, a parcel is in flight, and the version that decided on it is edited."""
    story = asked(Do(tool=HOLD), Do(tool=PARCEL, rule=a_rule()))
    story.world.downstreams["send_parcel"] = Downstream(kind=Kind.NEITHER, mishaps=deque([mishap]))
    story.calls.plan(Fault(when=When.KILL_AFTER, at=1, name="tool_gateway.perform"))
    story.calls.plan(Fault(when=When.KILL_AFTER, at=2, name="tool_gateway.perform"))
    _meanwhile(story, "tool_gateway.perform", lambda: forge(story))
    story.decide()
    assert (story.status, story.rows[-1].status) == ("quarantined", "in_flight")
    return story


def _meanwhile(story: Story, call: str, act: Callable[[], object]) -> None:
    """Do something right before the next call of this name."""

    def step_in(name: str) -> None:
        if name == call:
            story.calls.step_in = lambda _: None
            act()

    story.calls.step_in = step_in


def test_what_is_stored_of_a_release_can_be_read_by_anybody() -> None:
    """B09: the field that names what a version follows survives storage, and is absent where nothing was skipped."""
    story = _asked_twice()
    forge(story)
    found_out(story)
    release(story, from_version=2)

    body = story.world.checkpoints[story.key.key, 4].body

    assert json.loads(body)["follows"] == 2
    assert decode_checkpoint(body).follows == 2
    assert "follows" not in json.loads(story.world.checkpoints[story.key.key, 2].body)
    assert OPERATOR.subject in body
