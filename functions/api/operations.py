"""The operations of the API: how a route is registered, and what is known about all of them together."""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeVar

from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from functions.api.answers import Answer

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What an operation answers: with which status when it does what was asked, and with which others."""

    method: str
    path: str
    answer: type[Answer] | None
    status: int
    also: tuple[int, ...]

    def is_at(self, path: str) -> bool:
        """Whether a path is this operation's, whatever the method."""
        return re.fullmatch(re.sub(r"<[a-z_]+>", "[^/]+", self.path), path) is not None


_OPERATIONS: Final[dict[str, Operation]] = {}
OPERATIONS: Final[Mapping[str, Operation]] = MappingProxyType(_OPERATIONS)


def new_router() -> APIGatewayHttpRouter:
    """Make a router for a module of routes."""
    return APIGatewayHttpRouter()  # type: ignore[no-untyped-call] # published without a type


def operation(
    router: APIGatewayHttpRouter,
    name: str,
    method: str,
    path: str,
    *,
    answer: type[Answer] | None,
    status: int = 200,
    also: tuple[int, ...] = (),
) -> Callable[[FunctionT], FunctionT]:
    """Register a route under a name.

    `answer` is None for what the description leaves out: itself. What is answered is noted for the description and not
    handed to the router, which would build the schema of every possible answer before it serves its first request.
    """
    _OPERATIONS[name] = Operation(method=method, path=path, answer=answer, status=status, also=also)

    def register(function: FunctionT) -> FunctionT:
        summary, _, more = inspect.cleandoc(function.__doc__ or "").partition("\n")
        route: Callable[[FunctionT], FunctionT] = router.route(
            path,
            method,
            operation_id=name,
            summary=summary.rstrip("."),
            description=more.strip() or None,
            include_in_schema=answer is not None,
        )
        return route(function)

    return register


def methods_at(path: str) -> tuple[str, ...]:
    """The methods that a path has; none if there is no such path."""
    return tuple(sorted({known.method for known in OPERATIONS.values() if known.is_at(path)}))
