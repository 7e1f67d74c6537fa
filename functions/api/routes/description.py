"""The description of the API, made from its code. It says the same to everyone and nothing about anybody."""

from typing import TYPE_CHECKING, cast

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.content_types import APPLICATION_JSON

from functions.api.call import call_in
from functions.api.operations import new_router, operation

if TYPE_CHECKING:
    from aws_lambda_powertools.event_handler import APIGatewayHttpResolver

router = new_router()
PATH = "/openapi.json"


@operation(router, "describe_api", "GET", PATH, answer=None)
def describe() -> Response[str]:
    """Answer with the OpenAPI description."""
    # Imported when asked for: building the description costs more than everything else in this function.
    from functions.api.openapi import description_of  # noqa: PLC0415

    application = cast("APIGatewayHttpResolver", router.api_resolver)
    body = description_of(application, call_in(router.context).deps.tasks.workflows)
    # The same until the next deployment; a few minutes spare most calls.
    return Response(
        status_code=200, content_type=APPLICATION_JSON, body=body, headers={"Cache-Control": "public, max-age=300"}
    )
