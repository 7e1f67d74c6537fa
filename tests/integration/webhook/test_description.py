"""The webhook's part of the API's description is true of what is really answered."""

from typing import Any

import jsonschema_rs
import pytest

from functions.webhook.description import GOOD, REFUSALS, described
from shared.workflows.registry import discover
from tests.integration.webhook.conftest import NOT_SIGNED, SIGNED, STRANGER, Answer, Door

REFERENCE = "#/components/schemas/{model}"


def is_described(answer: Answer) -> bool:
    """Whether an answer has a described status, media type and form."""
    operation, schemas = described(discover(), reference=REFERENCE)
    content: dict[str, Any] = operation["responses"][str(answer.status)]["content"]
    schema = content[answer.headers["Content-Type"]]["schema"]
    validator = jsonschema_rs.validator_for({**schema, "components": {"schemas": schemas}})
    return bool(validator.is_valid(answer.json))


def test_every_kind_of_answer_is_as_described(door: Door) -> None:
    """Accepted, repeated, contradicted, kept, of another form, unsigned, too large, put off, and a failure of ours."""
    answers = [
        door.says(SIGNED),
        door.says(SIGNED),
        door.says(NOT_SIGNED, "msg_2"),
        door.says({"correlation_id": "nobody-waits", "answer": {}}, "msg_3"),
        door.says({"correlation_id": "nobody-waits"}, "msg_4"),
        door.says(SIGNED, by=STRANGER),
        door.says(b"[" * 70_000),
    ]
    door.secrets.unavailable = True
    answers.append(door.says(SIGNED))

    assert [answer.status for answer in answers] == [200, 200, 409, 202, 400, 401, 413, 503]
    assert {answer.status for answer in answers} | {500} == {*GOOD, *REFUSALS}
    assert all(is_described(answer) for answer in answers)


def test_another_answer_is_not_as_described(door: Door) -> None:
    """The check above can fail: a word more or less, or another media type, is seen."""
    good = door.says(SIGNED)

    assert not is_described(Answer(status=200, headers=good.headers, text='{"task_status": "ready"}'))
    assert not is_described(Answer(status=401, headers=door.says(SIGNED, by=STRANGER).headers, text="{}"))
    with pytest.raises(KeyError):
        is_described(Answer(status=404, headers=good.headers, text=good.text))
