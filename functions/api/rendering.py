"""Turning answers and problems into responses."""

from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.content_types import APPLICATION_JSON
from pydantic import BaseModel

from shared.runtime.api import PROBLEM_JSON, Problem

# Tasks are nobody's cache's business.
_HEADERS = {"Cache-Control": "no-store"}


def rendered(answer: BaseModel, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response[str]:
    """Render an answer as JSON."""
    return Response(
        status_code=status,
        content_type=APPLICATION_JSON,
        body=answer.model_dump_json(),
        headers={**_HEADERS, **(headers or {})},
    )


def rendered_problem(problem: Problem) -> Response[str]:
    """Render a problem as problem details."""
    return Response(
        status_code=int(problem.status),
        content_type=PROBLEM_JSON,
        body=problem.body,
        headers={**_HEADERS, **problem.headers},
    )


def as_answer_event(problem: Problem) -> dict[str, Any]:
    """Render a problem as the function's result, for a request that never reached the router."""
    return {
        "statusCode": int(problem.status),
        "headers": {"Content-Type": PROBLEM_JSON, **_HEADERS, **problem.headers},
        "body": problem.body,
        "isBase64Encoded": False,
    }
