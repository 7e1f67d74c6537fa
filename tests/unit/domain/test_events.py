"""Events: their published forms, and that nothing is published in another one."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.domain.canonical import Json, short_digest
from shared.domain.change import begin, prompt, publish
from shared.domain.errors import InvariantBroken
from shared.domain.events import EVENTS, Envelope, detail_of, schema_version_of
from shared.domain.outbox import MESSAGES, PublishEvent
from tests.builders import a_checkpoint, a_ground, a_wait

ROOT = Path(__file__).parents[3]
# A form that subscribers rely on, by event and version. One that changes needs a new version, and a line of its own.
PUBLISHED = {
    ("approval.requested", 1): "cfca1d3ebfd0efb6ab1a929c715f7f4b",
    ("input.requested", 1): "80ad33c32a85c39f8bdd115704a4bc3d",
    ("wait.reminded", 1): "a07a376e0c302ebd0e13165e019ded03",
    ("task.escalated", 1): "a07a376e0c302ebd0e13165e019ded03",
    ("task.needs_review", 1): "24b9f9556d0a002211a550431a67aff2",
    ("task.quarantined", 1): "b741bbc5c84d3eee1257e3a618bbdf65",
    ("approval.decided", 1): "58f846e72b5282e6b0c443215550740e",
    ("action.outcome_unknown", 1): "26d557363b272197c958ba296518bfff",
    ("task.recovered", 1): "12d3a5d91a48c1b67f9962d6aa14665c",
    ("task.closed", 1): "abcda8ddf96dedfb0fdde14abb77bde5",
    ("task.operated", 1): "10f13c5e457689495da70fd25794ee3f",
}


def form_of(name: str) -> str:
    """The digest of what a form promises: fields, types and limits. Descriptions may be improved."""
    schema = EVENTS[name].model_json_schema()
    fields: dict[str, Json] = {
        field: {key: value for key, value in promised.items() if key not in {"description", "title"}}
        for field, promised in schema["properties"].items()
    }
    return short_digest("event form", {"fields": fields, "required": sorted(schema["required"])})


def published_names() -> Iterator[tuple[str, str]]:
    """The event names that the code publishes, with where."""
    for path in sorted((ROOT / "shared").rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") in {"publish", "prompt", "PublishEvent"}:
                texts = [*call.args, *(k.value for k in call.keywords if k.arg == "event")]
                for each in texts:
                    if isinstance(each, ast.Constant) and isinstance(each.value, str):
                        yield each.value, f"{path.name}:{call.lineno}"


def test_published_forms_do_not_change_under_their_version() -> None:
    """A subscriber that was written for a version goes on understanding it."""
    assert {(name, form.schema_version): form_of(name) for name, form in EVENTS.items()} == PUBLISHED


def test_every_event_that_the_code_publishes_has_a_form() -> None:
    """And every form is published somewhere; the two that are looked up by a rung's word are named here."""
    named = dict(published_names())
    assert set(named) | {"wait.reminded", "task.escalated"} == set(EVENTS)


def test_an_event_without_a_form_is_not_published() -> None:
    """A misspelt name would reach nobody, in silence."""
    change = begin(a_checkpoint(), because="a test", ground=a_ground())
    with pytest.raises(InvariantBroken):
        publish(change, "task.finished", outcome="x")
    with pytest.raises(InvariantBroken):
        schema_version_of("task.finished")


@pytest.mark.parametrize(
    "fields",
    [
        {"reason": "x", "workflow": "refund"},
        {"reason": "x", "workflow": "refund", "stage": "opened", "more": 1},
        {"reason": 7, "workflow": "refund", "stage": "opened"},
        {"reason": None, "workflow": "refund", "stage": "opened"},
    ],
)
def test_an_event_holds_what_its_form_says_and_nothing_else(fields: dict[str, object]) -> None:
    """What is not promised does not leave the house; the error names the field and never what it held."""
    with pytest.raises(InvariantBroken) as raised:
        detail_of("task.recovered", fields)
    assert "reason" in str(raised.value) or "stage" in str(raised.value) or "more" in str(raised.value)


def test_a_prompt_is_bound_to_its_wait() -> None:
    """B72: which wait, of which version of the request; the row in the outbox knows how to find it again."""
    wait = a_wait()
    change = prompt(begin(a_checkpoint(), because="a test", ground=a_ground()), wait, "wait.reminded", to="operator")
    [message] = change.messages

    assert isinstance(message, PublishEvent)
    assert (message.wait_id, message.correlation_id) == (wait.wait_id, wait.correlation_id)
    assert message.detail["request_version"] == wait.request_version
    assert message.detail["wait"] == wait.name
    assert MESSAGES.validate_json(MESSAGES.dump_json(change.messages)) == change.messages


def test_an_older_row_of_the_outbox_can_still_be_read() -> None:
    """What was staged before events had versions is of version 1, and no prompt."""
    [message] = MESSAGES.validate_json(
        b'[{"kind":"publish_event","event":"task.closed","version":3,"detail":{"status":"completed"}}]'
    )
    assert isinstance(message, PublishEvent)
    assert (message.schema_version, message.wait_id, message.correlation_id) == (1, None, None)


def test_no_form_can_hold_a_right() -> None:
    """B72: an event names things by identifiers that give no right; there is no field for a link or a token."""
    fields = {field for form in EVENTS.values() for field in form.model_fields} | set(Envelope.model_fields)
    assert not [field for field in fields if any(word in field for word in ("url", "link", "token", "secret", "key"))]
