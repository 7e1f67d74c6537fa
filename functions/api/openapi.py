"""Building the OpenAPI description from the routes, the answers and the workflows' own request models."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver
from aws_lambda_powertools.event_handler.openapi.models import HTTPBearer
from pydantic.json_schema import models_json_schema

from functions.api.answers import Answer, GatewayAnswer, ProblemAnswer
from functions.api.operations import OPERATIONS, Operation
from functions.webhook import description as webhook
from shared.domain.workflow import Workflow
from shared.runtime.api import PROBLEM_JSON

TITLE: Final = "Holdfast"
VERSION: Final = "1.0.0"
DESCRIPTION: Final = (
    "Durable tasks: start them, follow them, amend them, stop them, decide their approvals, answer their questions, "
    "and what operators do about those that need a person. Outside systems tell tasks what they wait for. Every error "
    "is a problem document (RFC 9457) with a stable `code`."
)
_REFERENCE: Final = "#/components/schemas/{model}"
# What any operation may answer.
_ALWAYS: Final = (400, 401, 403, 500, 503)
# What the gateway may answer by itself, in a form of its own.
_THROTTLED: Final = int(HTTPStatus.TOO_MANY_REQUESTS)
_OF_THE_GATEWAY: Final = (401, 413, _THROTTLED, 500, 503)
# Schemas of the router's own error form, which is never sent.
_NOT_OURS: Final = ("HTTPValidationError", "ValidationError", "ResponseValidationError")


def description_of(application: APIGatewayHttpResolver, workflows: Mapping[str, Workflow]) -> str:
    """Return the description as JSON."""
    made: dict[str, Any] = json.loads(
        application.get_openapi_json_schema(
            title=TITLE,
            version=VERSION,
            description=DESCRIPTION,
            security_schemes={"token": HTTPBearer(bearerFormat="JWT")},
            security=[{"token": []}],
        )
    )
    made.pop("servers", None)
    schemas: dict[str, Any] = made["components"]["schemas"]
    for name in _NOT_OURS:
        schemas.pop(name, None)
    schemas.update(_answer_schemas())
    _name_requests(schemas, tuple(workflows.values()))
    _name_answers(schemas, tuple(workflows.values()))
    for known in _described():
        made["paths"][_template(known)][known.method.lower()]["responses"] = _responses(known)
    signed, signed_schemas = webhook.described(workflows, reference=_REFERENCE)
    made["paths"][webhook.PATH] = {"post": signed}
    schemas.update(signed_schemas)
    for operations in made["paths"].values():
        for operation in operations.values():
            _add_gateway(operation["responses"])
    return json.dumps(made)


def _add_gateway(responses: dict[str, Any]) -> None:
    """Say what comes from the gateway itself: another form of an answer that is there, or throttling, which is not."""
    own = {"application/json": {"schema": {"$ref": _REFERENCE.format(model=GatewayAnswer.__name__)}}}
    phrase = HTTPStatus(_THROTTLED).phrase
    responses[str(_THROTTLED)] = {"description": phrase, "content": {}}
    for status in map(str, _OF_THE_GATEWAY):
        if status in responses:
            responses[status]["content"] = {**responses[status]["content"], **own}


def _answer_schemas() -> dict[str, Any]:
    models: set[type[Answer]] = {known.answer for known in _described() if known.answer} | {
        ProblemAnswer,
        GatewayAnswer,
    }
    ordered = sorted(models, key=lambda model: model.__name__)
    _, schema = models_json_schema([(model, "validation") for model in ordered], ref_template=_REFERENCE)
    definitions: dict[str, Any] = schema["$defs"]
    return definitions


def _name_answers(schemas: dict[str, Any], workflows: tuple[Workflow, ...]) -> None:
    # Only what people answer; what outside systems say comes to another door.
    names = []
    for workflow in workflows:
        for wait in workflow.input_roles:
            name = f"{_camel(workflow.name)}{_camel(wait)}Answer"
            schema = workflow.answers[wait].model_json_schema(ref_template=_REFERENCE)
            schemas.update(schema.pop("$defs", {}))
            schemas[name] = schema
            names.append(name)
    if names:
        field = schemas["AnswerBody"]["properties"]["answer"]
        schemas["AnswerBody"]["properties"]["answer"] = {
            "title": field["title"],
            "description": field["description"],
            "anyOf": [{"$ref": _REFERENCE.format(model=name)} for name in names],
        }


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def _name_requests(schemas: dict[str, Any], workflows: tuple[Workflow, ...]) -> None:
    # The router knows a request as some fields; which ones is what the workflows say.
    names = []
    for workflow in workflows:
        schema = workflow.request.model_json_schema(ref_template=_REFERENCE)
        schemas.update(schema.pop("$defs", {}))
        if workflow.untrusted_field is not None:
            schema["properties"][workflow.untrusted_field] = {
                "anyOf": [{"type": "string"}, {"type": "null"}],
                "description": "Outside words; kept as evidence, read by people and models, obeyed by nobody",
            }
        name = f"{_camel(workflow.name)}Request"
        schemas[name] = schema
        names.append(name)
    for body in ("StartTaskBody", "AmendTaskBody"):
        field = schemas[body]["properties"]["request"]
        schemas[body]["properties"]["request"] = {
            "title": field["title"],
            "description": field["description"],
            "anyOf": [{"$ref": _REFERENCE.format(model=name)} for name in names],
        }


def _described() -> list[Operation]:
    return [known for known in OPERATIONS.values() if known.answer is not None]


def _responses(known: Operation) -> dict[str, Any]:
    name = known.answer.__name__ if known.answer else ""
    good = {status for status in (known.status, *known.also) if status < HTTPStatus.BAD_REQUEST}
    answer = {"application/json": {"schema": {"$ref": _REFERENCE.format(model=name)}}}
    problem = {PROBLEM_JSON: {"schema": {"$ref": _REFERENCE.format(model=ProblemAnswer.__name__)}}}
    return {
        str(status): {"description": HTTPStatus(status).phrase, "content": answer if status in good else problem}
        for status in sorted({known.status, *known.also, *_ALWAYS})
    }


def _template(known: Operation) -> str:
    return known.path.replace("<", "{").replace(">", "}")
