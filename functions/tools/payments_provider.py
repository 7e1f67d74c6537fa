"""What the payments provider takes in a request, and by which answers it promises that it did nothing."""

from http import HTTPStatus
from typing import Annotated, Final

from pydantic import Field, StringConstraints

from functions.tools.http_tool import Refusal

# The provider's own limit, in minor units: what lies above is refused there too.
AMOUNT_MINOR_MAX: Final = 10_000_000_000

NameField = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
KeyField = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:~-]{0,199}$")]
AmountField = Annotated[int, Field(ge=1, le=AMOUNT_MINOR_MAX)]
CurrencyField = Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$")]

# The provider judges a body only when it has no record of the key: these say that the key stands for nothing.
UNUSABLE_BODY: Final = frozenset(
    {
        Refusal(status=HTTPStatus.BAD_REQUEST, code="invalid_body"),
        Refusal(status=HTTPStatus.BAD_REQUEST, code="invalid_json"),
    }
)
# What was to be ended is not there, or is past being ended; the provider decides that in one step with the ending.
CANNOT_END: Final = frozenset(
    {
        Refusal(status=HTTPStatus.NOT_FOUND, code="unknown_target"),
        Refusal(status=HTTPStatus.CONFLICT, code="wrong_status"),
    }
)
