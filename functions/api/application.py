"""The routes of the API in one resolver, and what it says when none of them fits."""

from http import HTTPStatus
from typing import Final

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError

from functions.api.call import call_in
from functions.api.operations import OPERATIONS, methods_at
from functions.api.problems import explain
from functions.api.rendering import rendered_problem
from functions.api.routes import approvals, description, operators, tasks, waits
from shared.runtime.api import HttpError
from shared.runtime.strict_json import read_json

application: Final = APIGatewayHttpResolver(enable_validation=True, json_body_deserializer=read_json)
application.include_router(tasks.router)
application.include_router(approvals.router)
application.include_router(waits.router)
application.include_router(operators.router)
application.include_router(description.router)


@application.exception_handler(Exception)  # type: ignore[untyped-decorator] # published without types
def answer_error(error: Exception) -> Response[str]:
    """Answer whatever went wrong on the way."""
    context = application.context
    route = context["_route"]
    name = route.operation_id if route.operation_id in OPERATIONS else "none"
    if isinstance(error, NotFoundError):
        error = _no_route(method=route.method, path=context["_path"])
    task_id = context.get("_route_args", {}).get("task_id")
    return rendered_problem(explain(error, call_in(context), operation=name, task_id=task_id))


def _no_route(*, method: str, path: str) -> HttpError:
    allowed = methods_at(path)
    # The method is there and the router still found nothing: an identifier in the path cannot be one.
    if not allowed or method in allowed:
        return HttpError(HTTPStatus.NOT_FOUND, "not_found", "there is nothing at this address")
    msg = f"{method} is not possible here; {', '.join(allowed)} is"
    return HttpError(HTTPStatus.METHOD_NOT_ALLOWED, "method_not_allowed", msg, headers={"Allow": ", ".join(allowed)})
