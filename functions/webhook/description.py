"""How the webhook is described: one operation, signed instead of logged in, in the form of the API's description."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Any, Final

from pydantic import BaseModel, Field
from pydantic.json_schema import models_json_schema

from functions.webhook.body import EventBody
from shared.domain.workflow import Workflow
from shared.usecases.receive_event import Reception

PATH: Final = "/webhooks/{tenant}/{source}"
# What a sender is answered with: with a state if something was taken in or kept, with a problem otherwise.
GOOD: Final = (200, 202)
REFUSALS: Final = (400, 401, 409, 413, 500, 503)
_PARAMETERS: Final = (
    ("tenant", "path", "Whose task it is about"),
    ("source", "path", "Which outside system speaks; its secret checks the signature"),
    ("webhook-id", "header", "Your own id of the event; the same whenever you send it again"),
    ("webhook-timestamp", "header", "When you sign, in whole seconds since 1970"),
    ("webhook-signature", "header", "`v1,` and the signature in base64; several are separated by spaces"),
)


class EventState(BaseModel):
    """What became of an event."""

    reception: Annotated[str, Field(description=f"One of {', '.join(Reception)}")]
    task_status: Annotated[str | None, Field(description="Where the task stands now, if the event found one")] = None
    request_version: Annotated[int | None, Field(description="The current version of the task's request")] = None


class EventProblem(BaseModel):
    """Why nothing was taken in, as problem details (RFC 9457)."""

    type: Annotated[str, Field(description="The kind of problem, as a URN made of the code")]
    title: Annotated[str, Field(description="The kind of problem, in words")]
    status: Annotated[int, Field(description="The HTTP status")]
    detail: Annotated[str, Field(description="What happened here; for a 400 it names the fields")]
    code: Annotated[str, Field(description="The kind of problem, for machines; stable")]
    correlation_id: Annotated[str, Field(description="Finds the delivery in the logs")]
    current: Annotated[EventState | None, Field(description="Where the task stands, for a 409")] = None


def described(workflows: Mapping[str, Workflow], *, reference: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Describe the webhook.

    Args:
        workflows: what their event waits take as an answer becomes part of the description.
        reference: the template of a reference to a schema.

    Returns:
        The operation, and the schemas that it names.
    """
    models: tuple[type[BaseModel], ...] = (EventBody, EventProblem, EventState)
    _, made = models_json_schema([(model, "validation") for model in models], ref_template=reference)
    schemas: dict[str, Any] = made["$defs"]
    forms = _forms(workflows, reference=reference)
    if forms:
        answer = schemas["EventBody"]["properties"]["answer"]
        schemas["EventBody"]["properties"]["answer"] = {
            "title": answer["title"],
            "description": answer["description"],
            "anyOf": [{"$ref": reference.format(model=name)} for name in forms],
        }
    return _operation(reference), {**schemas, **forms}


def _forms(workflows: Mapping[str, Workflow], *, reference: str) -> dict[str, Any]:
    # What people are asked has another door.
    return {
        "".join(word.capitalize() for word in f"{workflow.name}_{wait}_event".split("_")): form.model_json_schema(
            ref_template=reference
        )
        for workflow in workflows.values()
        for wait, form in workflow.answers.items()
        if wait not in workflow.input_roles
    }


def _operation(reference: str) -> dict[str, Any]:
    def content(media_type: str, model: str) -> dict[str, Any]:
        return {media_type: {"schema": {"$ref": reference.format(model=model)}}}

    answers = {status: content("application/json", "EventState") for status in GOOD}
    problems = {status: content("application/problem+json", "EventProblem") for status in REFUSALS}
    return {
        "operationId": "receive_event",
        "summary": "Tell a task what it waits for, signed. Saying the same again changes nothing",
        "description": "There is no token: a signature by the Standard Webhooks specification is the authentication.",
        "security": [],
        "parameters": [
            {"name": name, "in": place, "required": True, "description": what, "schema": {"type": "string"}}
            for name, place, what in _PARAMETERS
        ],
        "requestBody": {"content": content("application/json", "EventBody"), "required": True},
        "responses": {
            str(status): {"description": HTTPStatus(status).phrase, "content": found}
            for status, found in {**answers, **problems}.items()
        },
    }
