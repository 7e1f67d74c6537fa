"""Reading changes nothing and shows nothing to whoever has no right to see it."""

from collections.abc import Callable

import pytest

from shared.domain.authority import Operation, Question, Ruling
from shared.domain.errors import InvalidRequest, NotAuthorised, TaskNotFound
from shared.domain.identity import PrincipalRef
from shared.domain.status import Status
from shared.usecases.list_tasks import list_tasks
from shared.usecases.read_task import read_task
from tests.fakes.story import CLERK, INTERN, ISSUER, MANAGER, STRANGER, Story, by_role


def a_refund() -> Story:
    """Start a refund that waits for an approval."""
    story = Story()
    story.start(note="the letter of a customer")
    return story


@pytest.mark.parametrize("who", [CLERK, MANAGER, INTERN])
def test_whoever_may_see_a_task_sees_how_it_stands(who: PrincipalRef) -> None:
    """A reader gets typed fields of the record: where it stands, why, what it waits for, and since when."""
    story = a_refund()

    seen = story.read(by=who)

    assert (seen.status, seen.request_version, seen.because) == (
        "waiting_approval",
        1,
        "a refund above 100.00 needs a manager",
    )
    assert [wait.kind for wait in seen.waits] == ["approval"]


def test_reading_writes_nothing() -> None:
    """B02: a reader, however often, changes no task, no wait and no message."""
    story = a_refund()
    before = (dict(story.world.heads), dict(story.world.waits), story.task)

    for _ in range(3):
        story.read()

    assert (dict(story.world.heads), dict(story.world.waits), story.task) == before
    assert "task_records.commit" not in story.calls.names[-6:]


def test_a_summary_holds_no_secret() -> None:
    """No token, no seal, no letter, no model's words: a summary is made of the record's own fields."""
    story = a_refund()
    story.decide()

    shown = str(story.read())

    assert "the letter of a customer" not in shown
    assert "token-" not in shown
    assert all(stored.seal not in shown for stored in story.world.checkpoints.values())


UNKNOWN = "tsk_" + "0" * 32


def _of_other_tenant(story: Story) -> object:
    return read_task(story.person(STRANGER), story.key.task_id, story.machine.api())


def _of_nobody(story: Story) -> object:
    return read_task(story.person(CLERK), UNKNOWN, story.machine.api())


def _without_right(story: Story) -> object:
    nobody = PrincipalRef(issuer=ISSUER, subject="nobody")
    story.world.authority.grant(nobody, tenant="acme", roles=set())
    return read_task(story.person(nobody), story.key.task_id, story.machine.api())


@pytest.mark.parametrize("look", [_of_other_tenant, _of_nobody, _without_right])
def test_three_reasons_have_one_answer(look: Callable[[Story], object]) -> None:
    """A2: another tenant's task, an unknown one, and one that may not be read cannot be told apart."""
    story = a_refund()

    with pytest.raises(TaskNotFound) as refusal:
        look(story)

    assert refusal.value.message == "no such task"


@pytest.mark.parametrize("task_id", ["", "tsk_1", "../heads", "tsk_" + "G" * 32, "acme#tsk_" + "0" * 32])
def test_what_is_no_id_is_refused(task_id: str) -> None:
    """A1: nothing that is said becomes part of a key unless it has the one form."""
    story = a_refund()

    with pytest.raises(InvalidRequest):
        read_task(story.person(CLERK), task_id, story.machine.api())


def test_rights_are_read_with_every_look() -> None:
    """A3: a right that was taken away a moment ago is gone."""
    story = a_refund()
    person = story.person(INTERN)
    story.world.policies.rule = lambda question: Ruling(
        allowed=question.operation is not Operation.READ and by_role(question).allowed, reason="readers are locked out"
    )

    with pytest.raises(TaskNotFound):
        read_task(person, story.key.task_id, story.machine.api())


@pytest.mark.parametrize("fault", [KeyError("amount"), TypeError("text is no number"), RecursionError()])
def test_a_policy_that_fails_denies(fault: Exception) -> None:
    """A5: whatever goes wrong in a policy, the answer is no, for reading, deciding, going on and sending."""
    story = a_refund()

    def failing(_question: Question) -> Ruling:
        raise fault

    story.click()
    story.world.policies.rule = failing
    with pytest.raises(TaskNotFound):
        story.read()
    story.machine.settle()

    assert story.status == "needs_review"
    assert story.refunds == []


def test_a_queue_shows_one_tenant_s_tasks_of_one_status() -> None:
    """A1: whose queue it is follows from who asks; oldest in that status first."""
    story = a_refund()
    ours = [story.key.task_id]
    story.later(minutes=1)
    story.start(key="second")
    ours.append(story.key.task_id)
    story.start(by=STRANGER)

    page = list_tasks(
        story.person(MANAGER), status=Status.WAITING_APPROVAL, limit=10, cursor=None, deps=story.machine.api()
    )

    assert [entry.task_id for entry in page.entries] == ours


def test_whoever_may_list_nothing_is_told() -> None:
    """A3: an empty list is no way to say no."""
    story = a_refund()
    story.world.policies.rule = lambda _: Ruling(allowed=False, reason="nobody lists")

    with pytest.raises(NotAuthorised):
        list_tasks(story.person(MANAGER), status=Status.READY, limit=10, cursor=None, deps=story.machine.api())


def test_a_cursor_of_another_queue_is_refused() -> None:
    """A1: a page is continued by the tenant and for the status that it was cut from."""
    story = a_refund()
    story.start(key="second")
    api = story.machine.api()
    first = list_tasks(story.person(MANAGER), status=Status.WAITING_APPROVAL, limit=1, cursor=None, deps=api)
    assert first.cursor is not None

    with pytest.raises(InvalidRequest):
        list_tasks(story.person(STRANGER), status=Status.WAITING_APPROVAL, limit=1, cursor=first.cursor, deps=api)
    with pytest.raises(InvalidRequest):
        list_tasks(story.person(MANAGER), status=Status.READY, limit=1, cursor=first.cursor, deps=api)
