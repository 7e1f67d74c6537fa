"""The description of the API: made from the code, complete, and true of what is really answered."""

from typing import Any

import jsonschema_rs
import pytest

from shared.domain.status import Status
from shared.workflows.registry import discover
from tests.integration.api.conftest import REFUND, Api, an_event, decision_of, page_of

OPERATIONS = {
    ("POST", "/tasks"): "start_task",
    ("GET", "/tasks"): "list_tasks",
    ("GET", "/tasks/{task_id}"): "read_task",
    ("PATCH", "/tasks/{task_id}"): "amend_task",
    ("GET", "/tasks/{task_id}/approvals/{approval_id}"): "read_approval",
    ("POST", "/tasks/{task_id}/approvals/{approval_id}/decision"): "decide_approval",
    ("POST", "/tasks/{task_id}/cancel"): "cancel_task",
    ("POST", "/tasks/{task_id}/waits/{wait_id}/answer"): "answer_wait",
    ("GET", "/tasks/{task_id}/record"): "inspect_record",
    ("POST", "/tasks/{task_id}/operations/retry"): "retry_task",
    ("POST", "/tasks/{task_id}/operations/settle"): "settle_action",
    ("POST", "/tasks/{task_id}/operations/release"): "release_task",
    ("POST", "/tasks/{task_id}/operations/close"): "close_task",
    ("POST", "/tasks/{task_id}/operations/quarantine"): "quarantine_task",
    ("POST", "/tasks/{task_id}/operations/escalate"): "escalate_wait",
}
SIGNED = {("POST", "/webhooks/{tenant}/{source}"): "receive_event"}


@pytest.fixture
def described(api: Api) -> dict[str, Any]:
    """Ask for the description as a stranger."""
    answer = api.send(an_event("GET", "/openapi.json"))
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
    return dict(answer.json)


def schema_of(described: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a component as a schema that stands alone."""
    return {"$ref": f"#/components/schemas/{name}", "components": described["components"]}


def test_every_operation_is_described(described: dict[str, Any]) -> None:
    """Each operation has its name, a sentence, a token or signature to bring, and nothing is described beyond them."""
    found = {
        (method.upper(), path): operation
        for path, operations in described["paths"].items()
        for method, operation in operations.items()
    }

    assert {where: operation["operationId"] for where, operation in found.items()} == OPERATIONS | SIGNED
    assert all(len(operation["summary"].split()) > 2 for operation in found.values())
    assert described["security"] == [{"token": []}]
    assert {where for where, operation in found.items() if "security" in operation} == set(SIGNED)
    for where, operation in found.items():
        assert {"400", "401", "429", "500", "503"} < set(operation["responses"])
        assert ("403" in operation["responses"]) is (where in OPERATIONS)


def test_every_field_and_parameter_is_explained(described: dict[str, Any]) -> None:
    """Nobody has to guess what a field means."""
    silent = [
        f"{name}.{field}"
        for name, schema in described["components"]["schemas"].items()
        for field, described_as in schema.get("properties", {}).items()
        if "description" not in described_as
    ]
    parameters = [
        parameter
        for operations in described["paths"].values()
        for operation in operations.values()
        for parameter in operation.get("parameters", [])
    ]

    assert silent == []
    assert all(parameter["description"] for parameter in parameters)


def test_statuses_and_requests_are_the_codes_own(described: dict[str, Any]) -> None:
    """The enumeration of statuses and the workflow's request, outside words included, come from the code."""
    schemas = described["components"]["schemas"]

    assert schemas["Status"]["enum"] == [str(status) for status in Status]
    assert set(schemas["RefundRequest"]["properties"]) == {*REFUND, "note"}
    assert schemas["RefundRequest"]["properties"]["note"]["anyOf"] == [{"type": "string"}, {"type": "null"}]
    assert schemas["StartTaskBody"]["properties"]["request"]["anyOf"] == [
        {"$ref": f"#/components/schemas/{workflow.title().replace('_', '')}Request"} for workflow in sorted(discover())
    ]
    assert schemas["AnswerBody"]["properties"]["answer"]["anyOf"] == [
        {"$ref": "#/components/schemas/OnboardingEquipmentChosenAnswer"}
    ]
    assert set(schemas["OnboardingEquipmentChosenAnswer"]["properties"]) == {"decision", "keyboard", "screen"}
    assert schemas["EventBody"]["properties"]["answer"]["anyOf"] == [
        {"$ref": "#/components/schemas/GoodsReturnGoodsReceivedEvent"},
        {"$ref": "#/components/schemas/OnboardingDocumentSignedEvent"},
    ]
    assert set(schemas["OnboardingDocumentSignedEvent"]["properties"]) == {"document_reference", "signed_on"}
    for body in ("DecisionBody", "CancelBody", "AnswerBody", "CommandBody", "SettleBody", "ReleaseBody", "EventBody"):
        assert schemas[body]["additionalProperties"] is False


def test_every_reference_leads_somewhere(described: dict[str, Any]) -> None:
    """A client generator finds every schema that is named, and no schema of the router's own errors."""
    names = set(described["components"]["schemas"])

    def references(value: object) -> set[str]:
        if isinstance(value, dict):
            own = {str(value["$ref"]).rpartition("/")[2]} if "$ref" in value else set()
            return own.union(*(references(item) for item in value.values()))
        return set().union(*(references(item) for item in value)) if isinstance(value, list) else set()

    assert references(described) <= names
    assert not names & {"HTTPValidationError", "ValidationError", "ResponseValidationError"}


def test_answers_are_as_described(api: Api, described: dict[str, Any]) -> None:
    """What the handler really answers fits the schema that it publishes, problems included."""
    task = api.started(note="please")
    path = f"/tasks/{task['task_id']}"
    answers = {
        "TaskAnswer": [task, api.call("clerk-1", "GET", path).json],
        "QueueAnswer": [api.call("clerk-1", "GET", "/tasks", query={"status": "waiting_approval"}).json],
        "RecordAnswer": [api.call("operator-1", "GET", f"{path}/record").json],
        "ApprovalPageAnswer": [api.call("manager-7", "GET", page_of(task)).json],
        "ProblemAnswer": [
            api.call("manager-7", "POST", decision_of(task), body={"decision": "approve", "version": 9}).json,
            api.call("manager-7", "POST", decision_of(task), body={"decision": "maybe", "version": 1}).json,
            api.call("nobody", "GET", path).json,
            api.send(an_event("GET", path)).json,
        ],
    }

    for name, values in answers.items():
        for value in values:
            jsonschema_rs.validate(schema_of(described, name), value)
    with pytest.raises(jsonschema_rs.ValidationError):
        jsonschema_rs.validate(schema_of(described, "TaskAnswer"), {**task, "version": "1"})


def test_outside_words_may_be_null_as_described(api: Api) -> None:
    """B31: null says the same as leaving them out, so it is the same request; another type is refused."""
    silent, again = api.started(note=None), api.start()

    assert (again.status, again.json["task_id"]) == (200, silent["task_id"])
    others: tuple[object, ...] = (1, True, {}, ["words"])
    assert [api.start(key="another", note=other).status for other in others] == [400] * 4
