"""What the office's services, its post and its supplier, take in a request, and by which answers they did nothing."""

from http import HTTPStatus
from typing import Annotated, Final

from pydantic import StringConstraints

from functions.tools.http_tool import Refusal

NameField = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
DayField = Annotated[str, StringConstraints(pattern=r"^\d{4}-\d{2}-\d{2}$")]

# A body is judged before anything is recorded: these say that the request did nothing.
UNUSABLE_BODY: Final = frozenset(
    {
        Refusal(status=HTTPStatus.BAD_REQUEST, code="invalid_body"),
        Refusal(status=HTTPStatus.BAD_REQUEST, code="invalid_json"),
    }
)
