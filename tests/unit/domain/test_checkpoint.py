"""The checkpoint: what is stored is what is read back, and it stays small."""

import json
from collections.abc import Callable
from datetime import timedelta

import pytest
from pydantic import ValidationError

from shared.domain.action import Action, ActionSpec, ActionStatus, Arguments, EffectClass
from shared.domain.change import begin
from shared.domain.checkpoint import (
    BECAUSE_CHARACTERS_MAX,
    CHECK_UP,
    CHECKPOINT_BYTES_MAX,
    RECENT_MAX,
    Checkpoint,
    Fact,
    decode_checkpoint,
    encode_checkpoint,
    head_columns,
)
from shared.domain.errors import RequestTooLarge
from shared.domain.instants import format_instant
from shared.domain.status import TERMINAL, Status
from tests.builders import a_checkpoint, a_ground, a_wait
from tests.fakes.clock import NOON


def with_business(task: Checkpoint, **fields: object) -> Checkpoint:
    """Replace fields of the business layer."""
    return task.model_copy(update={"business": task.business.model_copy(update=fields)})


def with_execution(task: Checkpoint, **fields: object) -> Checkpoint:
    """Replace fields of the execution layer."""
    return task.model_copy(update={"execution": task.execution.model_copy(update=fields)})


def an_action(arguments: Arguments) -> Action:
    """Make an action with these arguments."""
    return Action(
        operation="acme:tsk:v1:1:pay",
        ordinal=1,
        request_version=1,
        spec=ActionSpec(tool="pay", arguments=arguments),
        effect=EffectClass.KEYED_WRITE,
        status=ActionStatus.INTENT,
    )


def test_a_checkpoint_is_read_back_as_it_was_stored() -> None:
    """R1: a fresh process has the same task before it."""
    task = a_checkpoint()

    assert decode_checkpoint(encode_checkpoint(task)) == task


@pytest.mark.parametrize("arguments", [{}, {"memo": None}, {"memo": "", "count": 0, "ok": False}])
def test_arguments_without_a_value_survive_storage(arguments: Arguments) -> None:
    """B09: an empty or absent value of an action is part of its digest, so storage may not tidy it away."""
    task = with_execution(a_checkpoint(), actions=(an_action(arguments),))

    stored = decode_checkpoint(encode_checkpoint(task))

    assert stored == task
    assert stored.execution.actions[0].digest == task.execution.actions[0].digest


@pytest.mark.parametrize("request_", [{}, {"memo": None}])
def test_a_request_without_values_survives_storage(request_: dict[str, str | None]) -> None:
    """B09: a request may be empty; it is still the request."""
    task = with_business(a_checkpoint(), request=request_)

    assert decode_checkpoint(encode_checkpoint(task)) == task


def test_a_fact_without_a_value_survives_storage() -> None:
    """B09: a provider that said "nothing" has said something."""
    task = with_business(a_checkpoint(), facts=(Fact(name="checked", happened=True, values={"limit": None}),))

    assert decode_checkpoint(encode_checkpoint(task)) == task


def test_the_stored_body_is_text_in_canonical_form() -> None:
    """B09: the store gets text, so it cannot reshape a number or a set."""
    body = encode_checkpoint(a_checkpoint())

    assert list(json.loads(body)) == sorted(json.loads(body))
    assert '"amount_minor":45000' in body


@pytest.mark.parametrize(
    "damage",
    [
        lambda body: body.replace("45000", "45001.0"),
        lambda body: body.replace("45000", '"45000"').replace('"version":1', '"version":"1"'),
        lambda body: body.replace('"schema_version":1', '"schema_version":1,"surprise":true'),
        lambda body: body.replace('"status":"ready"', '"status":"done"'),
        lambda body: body.replace('"owner"', '"holder"'),
        lambda body: body[:-1],
        lambda _body: "",
        lambda _body: "null",
    ],
    ids=["float", "text for number", "unknown field", "unknown status", "missing field", "cut off", "empty", "null"],
)
def test_a_body_of_another_form_is_no_checkpoint(damage: Callable[[str], str]) -> None:
    """R6: reading is strict: what the contract does not know is refused."""
    with pytest.raises(ValueError, match=r".+"):
        decode_checkpoint(damage(encode_checkpoint(a_checkpoint())))


def test_a_checkpoint_can_only_get_so_large() -> None:
    """B59: the limit is counted in bytes, not in characters, before anything is stored."""
    three_bytes_each = "\u20ac" * (CHECKPOINT_BYTES_MAX // 3)
    task = with_business(a_checkpoint(), request={"note": three_bytes_each})

    with pytest.raises(RequestTooLarge):
        encode_checkpoint(task)


def test_a_new_task_needs_few_bytes() -> None:
    """A plain task stays far below its limit, so that hundreds of steps fit."""
    assert len(encode_checkpoint(a_checkpoint())) < 2_000


def test_the_progress_log_keeps_its_length() -> None:
    """However many transitions there were, the log holds the last few."""
    task = a_checkpoint()
    for number in range(50):
        task = begin(task, because=f"step {number}", ground=a_ground()).task

    assert [event.what for event in task.execution.recent] == [f"step {n}" for n in range(50 - RECENT_MAX, 50)]


def test_a_long_reason_is_cut_where_it_is_written() -> None:
    """A reason from a policy or a provider can be long; the checkpoint it is stored in can still be read."""
    task = begin(a_checkpoint(), because="x" * 5_000, ground=a_ground()).task

    assert len(task.business.because) == BECAUSE_CHARACTERS_MAX
    assert decode_checkpoint(encode_checkpoint(task)) == task


def test_nothing_can_be_changed_in_place() -> None:
    """A half-updated task cannot exist."""
    with pytest.raises(ValidationError):
        a_checkpoint().version = 2  # type: ignore[misc]


@pytest.mark.parametrize("status", list(Status))
def test_the_head_says_what_the_checkpoint_says(status: Status) -> None:
    """B19: every column that something is decided by is derived from the sealed body."""
    task = a_checkpoint(status=status, version=7)
    columns = head_columns(task)

    assert (columns["status"], columns["version"], columns["queue"]) == (str(status), 7, f"acme#{status}")
    assert columns["owner"] == task.business.owner.key


@pytest.mark.parametrize("status", sorted(TERMINAL))
def test_a_closed_task_is_due_for_nothing(status: Status) -> None:
    """A task that has ended is in no sweep."""
    assert not {"due_at", "watch", "check_at"} & set(head_columns(a_checkpoint(status=status)))


@pytest.mark.parametrize("rung", [0, 1])
def test_a_waiting_task_is_looked_at_when_its_next_rung_is_due(rung: int) -> None:
    """A legitimate three-day wait is left alone until its reminder, and after that until its deadline."""
    wait = a_wait().model_copy(update={"rung": rung})
    task = with_execution(a_checkpoint(status=Status.WAITING_APPROVAL), waits=(wait.pending(),))

    assert head_columns(task)["check_at"] == format_instant(wait.next_rung_at)
    assert (wait.next_rung_at == wait.deadline_at) is (rung == 1)


def test_a_task_on_its_way_is_looked_at_soon() -> None:
    """A task that waits for nobody and does not move is found within two check-ups."""
    check_at = head_columns(a_checkpoint(now=NOON))["check_at"]

    assert format_instant(NOON + CHECK_UP) <= str(check_at) <= format_instant(NOON + 2 * CHECK_UP)


def test_a_week_of_waiting_does_not_come_due_early() -> None:
    """What is due is the earliest of the task's deadlines."""
    wait = a_wait()
    task = with_execution(a_checkpoint(), waits=(wait.pending(),))
    late = wait.model_copy(update={"deadline_at": NOON + timedelta(days=90)}).pending()

    assert head_columns(task)["due_at"] == format_instant(wait.deadline_at)
    assert head_columns(with_execution(task, waits=(late,)))["due_at"] == format_instant(task.business.deadline_at)
