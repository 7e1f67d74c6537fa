"""Whole tasks on the fakes and on DynamoDB Local at once: every store answers every call the same."""

import itertools
from typing import TYPE_CHECKING

import pytest

from shared.domain.approval import DecisionWord
from shared.domain.checkpoint import CancelScope
from shared.domain.errors import StaleApproval
from shared.domain.identity import TaskKey
from shared.usecases.cancel_task import CancelTask, cancel_task
from tests.contract.stores import Stores, real_stores
from tests.contract.twins import twin_process
from tests.fakes.calls import Calls
from tests.fakes.clock import FakeIds
from tests.fakes.downstream import Mishap
from tests.fakes.operating import close, quarantine, release, retry, settle, with_operators
from tests.fakes.store import World
from tests.fakes.story import CLERK, MANAGER, Story

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# Far from the seeds of other tests: attempt ids name transactions, and the tables are shared.
_seeds = itertools.count(1_000)


@pytest.fixture
def real(dynamodb: "DynamoDBClient") -> Stores:
    """Make the adapters."""
    return real_stores(dynamodb, seed=next(_seeds))


@pytest.fixture
def story(real: Stores) -> Story:
    """Make a story whose every process has both kinds of stores."""
    made = Story()
    made.world.ids = FakeIds(next(_seeds))

    def process(world: World, calls: Calls) -> object:
        return twin_process(world, calls, real)

    made.machine._process = process  # type: ignore[assignment]
    return made


@pytest.fixture
def once() -> str:
    """Make an idempotency key that no other test has used: the tables are shared."""
    return f"key-{next(_seeds)}"


def key_of(story: Story) -> TaskKey:
    """Name the story's task."""
    task = story.task
    return TaskKey(tenant="acme", task_id=task.task_id)


def test_an_approved_refund(story: Story, real: Stores, once: str) -> None:
    """L1 to L6: from the request to the closed task."""
    story.start(key=once)
    story.decide()

    assert story.status == "completed"
    assert len(story.refunds) == 1
    assert real.back_door.staged(key_of(story)) == []


def test_a_refund_whose_answer_was_lost(story: Story, once: str) -> None:
    """L5, L6: sent, the answer lost, asked again under the same key."""
    story.start(key=once)
    story.bank.mishaps.append(Mishap.RECORDED_NO_ANSWER)
    story.decide()

    assert story.status == "completed"
    assert len(story.refunds) == 1


def test_an_amended_refund(story: Story, once: str) -> None:
    """L7: the old approval is void, the new one works."""
    story.start(key=once)
    old = story.open_approval
    story.amend(amount_minor=20_000)
    with pytest.raises(StaleApproval):
        story.decide(approval_id=old, request_version=1)
    story.decide()

    assert story.status == "completed"
    assert [effect.arguments["amount_minor"] for effect in story.refunds] == [20_000]


def test_a_rejected_and_a_canceled_refund(story: Story, once: str) -> None:
    """B55, I4: both end without an effect."""
    story.start(key=once)
    story.decide(DecisionWord.REJECT)
    assert story.refunds == []
    story.start(key=f"{once}-again")
    story.cancel()
    assert story.refunds == []


def test_a_manager_who_lost_the_right(story: Story, once: str) -> None:
    """B06: parked for another approval, on both."""
    story.start(key=once)
    story.click()
    story.world.authority.disable(MANAGER)
    story.machine.settle()
    assert story.refunds == []


def test_a_refund_that_is_quarantined_by_hand_and_released(story: Story, once: str) -> None:
    """O2, R6: marked, released from its intact version, asked about again, and paid once, on both."""
    with_operators(story)
    story.start(key=once)
    quarantine(story)
    story.machine.settle()
    release(story, from_version=1)
    story.machine.settle()
    story.decide()

    assert story.status == "completed"
    assert len(story.refunds) == 1


def test_a_quarantined_refund_that_is_closed(story: Story, once: str) -> None:
    """O2: the unsent intent is taken back and every wait ends, on both."""
    with_operators(story)
    story.start(key=once)
    story.click()
    quarantine(story)
    close(story)
    story.machine.settle()

    assert (story.status, story.refunds) == ("failed", [])


def test_a_refund_in_doubt_that_a_person_settles(story: Story, once: str) -> None:
    """O2: claimed, settled under the fence, retried, on both."""
    with_operators(story)
    story.start(key=once)
    story.bank.mishaps.extend([Mishap.RECORDED_NO_ANSWER] * 3)
    story.bank.lookups_unclear = 100
    story.decide()
    assert story.status == "needs_review"
    retry(story)
    story.bank.lookups_unclear = 0
    settle(story, "done", reference="P-77")
    story.machine.settle()

    assert story.status == "completed"
    assert len(story.refunds) == 1


def test_a_call_that_is_stopped_before_it_left(story: Story, once: str) -> None:
    """I4: the intent is withdrawn in the commit of the cancel, on both."""
    story.start(key=once)
    stopped: list[str] = []

    def step_in(name: str) -> None:
        # Between two calls of the stores, or one of them would have been asked before and the other after.
        if name == "authority.read" and story.rows:
            story.calls.step_in = lambda _: None
            command = CancelTask(principal=story.person(CLERK), task_id=story.task.task_id, scope=CancelScope.TOOL_CALL)
            stopped.append(cancel_task(command, story.machine.api()).status)

    story.calls.step_in = step_in
    story.decide()

    assert (stopped, story.status) == (["needs_review"], "needs_review")
    assert story.rows[-1].status == "void"
