"""Starting: one commit makes the task entirely or not at all, and the same key never makes two."""

import pytest

from shared.domain.authority import Operation, Question, Ruling
from shared.domain.errors import EngineError, InvalidRequest, KeyReused, NotAuthorised, RequestTooLarge, TaskNotFound
from shared.usecases.request_form import UNTRUSTED_BYTES_MAX
from shared.usecases.start_task import START_KEY_KEPT, StartTask, start_task
from tests.fakes.calls import Calls, Fault, Killed, When
from tests.fakes.story import CLERK, INTERN, REFUND, STRANGER, Story


def stored(story: Story) -> tuple[int, ...]:
    """How much is stored that a request may have left behind; evidence without a task is nobody's."""
    world = story.world
    return tuple(len(rows) for rows in (world.heads, world.checkpoints, world.waits, world.inbox, world.actions))


NOTHING = (0, 0, 0, 0, 0)


def test_everything_of_a_start_is_one_commit() -> None:
    """Task, wait, idempotency record and the start of the execution are there together."""
    story = Story()

    started = start_task(
        StartTask(principal=story.person(CLERK), workflow="refund", request=REFUND, idempotency_key="k"),
        story.machine.api(),
    )

    assert started.created
    assert stored(story) == (1, 1, 1, 1, 0)
    assert story.calls.names.count("task_records.commit") == 1
    kinds = [message.kind for row in story.world.undelivered() for message in row.messages]
    assert kinds.count("start_execution") == 1


def test_the_same_key_and_body_is_the_same_task() -> None:
    """B61: a repeat answers with the task as it is now, and starts nothing."""
    story = Story()
    first = story.start()
    before = stored(story)

    again = story.start()

    assert (again.task_id, again.created) == (first.task_id, False)
    assert stored(story) == before
    assert len(story.world.machines.executions) == 1


def test_the_order_of_fields_does_not_make_another_body() -> None:
    """B61: a client that writes its fields in another order repeats itself all the same."""
    story = Story()
    first = story.start(request=REFUND)

    again = story.start(request=dict(reversed(REFUND.items())))

    assert again.task_id == first.task_id


def test_a_repeat_after_the_end_answers_with_the_end() -> None:
    """B61: redelivered after success, it is answered and nothing runs again."""
    story = Story()
    first = story.start(amount_minor=5_000)

    again = story.start(amount_minor=5_000)

    assert (again.task_id, again.status) == (first.task_id, "completed")
    assert len(story.refunds) == 1


def test_an_execution_that_is_started_again_finds_the_task_closed() -> None:
    """B61: ninety-one days later the name is free again; the task row, not the name, stops the second run."""
    story = Story()
    story.start(amount_minor=5_000)
    story.world.clock.advance(START_KEY_KEPT)
    closed = story.task

    story.run_again()

    assert story.task == closed
    assert len(story.refunds) == 1


@pytest.mark.parametrize(
    "changes",
    [{"amount_minor": 45_001}, {"currency": "USD"}, {"note": "another letter"}, {"order_reference": "B-1"}],
    ids=str,
)
def test_the_same_key_with_another_body_is_refused(changes: dict[str, object]) -> None:
    """B16: a key belongs to one request."""
    story = Story()
    story.start()
    before = stored(story)

    with pytest.raises(KeyReused):
        story.start(request=REFUND | changes)

    assert stored(story) == before


def test_keys_of_two_tenants_are_two_keys() -> None:
    """B16: tenant B with tenant A's key starts its own task and learns nothing of A's."""
    story = Story()
    ours = story.start()
    theirs = story.start(by=STRANGER, request=REFUND | {"amount_minor": 70_000})

    assert theirs.created
    assert theirs.task_id != ours.task_id
    with pytest.raises(TaskNotFound):
        story.read(by=CLERK)


def test_keys_of_two_people_are_two_keys() -> None:
    """B16: a colleague's key is the colleague's."""
    story = Story()
    ours = story.start()
    story.world.authority.grant(INTERN, tenant="acme", roles={"refund_clerk"})

    theirs = story.start(by=INTERN)

    assert theirs.created
    assert theirs.task_id != ours.task_id


@pytest.mark.parametrize("key", ["", " ", "   ", "\t\n"])
def test_a_start_without_a_key_is_refused(key: str) -> None:
    """B27: without a key a repeat could start a second task; there is no unprotected way."""
    story = Story()

    for _ in range(2):
        with pytest.raises(InvalidRequest):
            story.start(key=key)

    assert stored(story) == NOTHING


@pytest.mark.parametrize(
    "changes",
    [
        {"amount_minor": 0},
        {"amount_minor": -1},
        {"amount_minor": 100_000_001},
        {"amount_minor": 2**63},
        {"amount_minor": 450.0},
        {"amount_minor": "45000"},
        {"amount_minor": True},
        {"amount_minor": None},
        {"currency": "eur"},
        {"currency": "XXX"},
        {"order_reference": ""},
        {"order_reference": "A" * 41},
        {"order_reference": "A-1\n"},
        {"order_reference": "\u0410-1001"},
        {"note": 5},
        {"note": ["x"]},
        {"note": "half \ud800 a character"},
        {"tenant": "globex"},
        {"status": "ready"},
        {"approved": True},
        {"owner": "clerk-9"},
    ],
    ids=ascii,
)
def test_bad_input_is_refused_and_leaves_nothing(changes: dict[str, object]) -> None:
    """A1: wrong types, ranges and fields that are not asked for, a tenant among them, are refused before anything."""
    story = Story()

    with pytest.raises(InvalidRequest):
        story.start(request=REFUND | changes)

    assert stored(story) == NOTHING
    assert story.world.evidence == {}


@pytest.mark.parametrize("missing", list(REFUND))
def test_a_missing_field_is_refused(missing: str) -> None:
    """Every consequential field has to be said."""
    story = Story()

    with pytest.raises(InvalidRequest, match=missing):
        story.start(request={name: value for name, value in REFUND.items() if name != missing})


@pytest.mark.parametrize(("amount", "status"), [(1, "completed"), (100_000_000, "waiting_approval")])
def test_amounts_at_their_bounds_are_taken(amount: int, status: str) -> None:
    """The smallest and the largest amount are amounts."""
    story = Story()
    story.start(amount_minor=amount)

    assert story.status == status


def test_an_unknown_workflow_is_refused() -> None:
    """Nothing is guessed from a name."""
    with pytest.raises(InvalidRequest):
        Story().start(workflow="refunds")


@pytest.mark.parametrize("characters", [43_334, 100_000])
def test_too_long_a_letter_is_refused_before_any_task_exists(characters: int) -> None:
    """B59: 130 KB and 300 KB of three-byte characters; the limit counts bytes."""
    story = Story()

    with pytest.raises(RequestTooLarge):
        story.start(note="\u20ac" * characters)

    assert stored(story) == NOTHING
    assert story.world.evidence == {}


def test_the_longest_letter_is_kept_by_reference() -> None:
    """B59: what is large is stored apart; the task itself stays small."""
    story = Story()
    note = "\u20ac" * (UNTRUSTED_BYTES_MAX // 3)

    story.start(note=note)

    assert len(story.world.checkpoints[story.key.key, 1].body) < 4_000
    assert [body.decode() for body in story.world.evidence.values()] == [note]


def test_the_tenant_is_the_principal_s() -> None:
    """A1: where a task lives follows from who asks, and from nothing that is said."""
    story = Story()
    story.start(by=STRANGER)

    assert story.key.tenant == "globex"
    assert story.task.business.owner == STRANGER


def test_whoever_may_not_start_starts_nothing() -> None:
    """A3: the right to start is asked with the amounts that are asked for."""
    story = Story()

    with pytest.raises(NotAuthorised):
        story.start(by=INTERN)

    assert stored(story) == NOTHING
    asked = [q for q in story.world.policies.questions if q.operation is Operation.START]
    assert [q.attributes["amount_minor"] for q in asked] == [45_000]


def test_policies_can_limit_what_somebody_may_start() -> None:
    """A3: a limit in a policy holds at the door."""
    story = Story()
    story.world.policies.rule = lambda question: Ruling(allowed=_small(question), reason="the limit")

    with pytest.raises(NotAuthorised):
        story.start(amount_minor=90_000)

    assert story.start(amount_minor=9_000).created


def _small(question: Question) -> bool:
    return question.operation is not Operation.START or int(question.attributes["amount_minor"] or 0) < 10_000


@pytest.mark.parametrize("when", [When.KILL_BEFORE, When.KILL_AFTER, When.DROP_REPLY, When.LOSE_REQUEST])
@pytest.mark.parametrize("call", ["evidence_store.put", "sealer.seal", "task_records.commit"])
def test_a_start_that_was_cut_short_is_repeated_into_one_task(call: str, when: When) -> None:
    """C-A and B11: whatever died or got lost, the client repeats its request and there is one task."""
    story = Story(calls=Calls(Fault(when=when, at=1, name=call)))

    with pytest.raises((EngineError, Killed)):
        story.start(note="a letter", amount_minor=5_000)
    story.start(note="a letter", amount_minor=5_000)

    assert len(story.world.heads) == len(story.world.machines.executions) == 1
    assert story.status == "completed"
    assert len(story.refunds) == 1


def test_a_start_in_a_freeze_is_refused() -> None:
    """A6: a freeze stops new tasks too; nobody is asked to approve what may not go on."""
    story = Story()
    story.world.authority.freezes["tenant#acme"] = "incident 7"

    with pytest.raises(EngineError, match="incident 7"):
        story.start()

    assert stored(story) == NOTHING
    story.world.authority.freezes.clear()
    assert story.start().created
