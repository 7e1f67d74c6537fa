"""What every cloud client's errors have in common. Codes are read; messages are for people and never looked at."""

from typing import Final

from botocore.exceptions import (
    BotoCoreError,
    ChecksumError,
    ClientError,
    ConnectionError,  # noqa: A004 - botocore's own
    ConnectTimeoutError,
    EndpointConnectionError,
    FlexibleChecksumError,
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
    ParamValidationError,
    PartialCredentialsError,
)
from botocore.parsers import ResponseParserError

CLOUD_ERRORS: Final = (ClientError, BotoCoreError, ResponseParserError)

# Connections that break, time out or cannot be made; a name that does not resolve; a read that never ends.
_NO_ANSWER: Final = (HTTPClientError, ConnectionError)
# What came is not what was sent: cut off, mangled on the way, or from something in between that is no cloud.
_BROKEN_ANSWER: Final = (ChecksumError, FlexibleChecksumError, IncompleteReadError, ResponseParserError)

_THROTTLES: Final = frozenset(
    {
        "RequestLimitExceeded",
        "RequestThrottled",
        "SlowDown",
        "ThrottledException",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
_SERVER_FAULT: Final = 500


def code_of(error: Exception) -> str:
    """Name an error without its message, which may hold anybody's data."""
    if isinstance(error, ClientError):
        return str(error.response.get("Error", {}).get("Code", "")) or "an error without code"
    return type(error).__name__


def may_pass(error: Exception) -> bool:
    """Say whether the same request may succeed later: throttled, a fault of the service, or no answer."""
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return status >= _SERVER_FAULT or code_of(error) in _THROTTLES
    return is_unanswered(error)


def is_unanswered(error: Exception) -> bool:
    """Say whether no whole answer came: the request may or may not have been carried out."""
    return isinstance(error, (*_NO_ANSWER, *_BROKEN_ANSWER))


def never_left(error: Exception) -> bool:
    """Say whether the error proves that the request never left us."""
    before_any_connection = (NoCredentialsError, PartialCredentialsError, ParamValidationError)
    no_connection = (EndpointConnectionError, ConnectTimeoutError)
    return isinstance(error, (*before_any_connection, *no_connection))
