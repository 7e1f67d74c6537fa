"""What a verified sender says, parsed strictly; only bytes whose signature was checked come here."""

from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from functions.webhook.incoming import Incoming
from shared.domain.action import Scalar
from shared.domain.answer import SignedEvent
from shared.domain.errors import InvalidRequest
from shared.domain.identity import Reference
from shared.runtime.strict_json import read_json, whole_number

# Far more than any form of a wait has; the wait's own form is checked where the wait is known.
ANSWER_FIELDS_MAX: Final = 100
FIELD_NAME_CHARACTERS_MAX: Final = 100


class EventBody(BaseModel):
    """The body of a delivery."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", hide_input_in_errors=True)

    correlation_id: Annotated[Reference, Field(description="What both sides know the matter by")]
    request_version: Annotated[
        Annotated[int, Field(ge=1, le=2**31 - 1)] | None,
        Field(description="The version of the request that you speak about; another one is refused"),
    ] = None
    answer: Annotated[
        dict[Annotated[str, Field(min_length=1, max_length=FIELD_NAME_CHARACTERS_MAX)], Scalar],
        Field(max_length=ANSWER_FIELDS_MAX, description="Flat fields in the form that the wait asks for"),
    ]


def read_event(incoming: Incoming) -> SignedEvent:
    """Read the body of a delivery whose signature was verified.

    Raises:
        InvalidRequest: it is not UTF-8, not JSON with one meaning (B14), or does not have the promised fields.
    """
    _require_utf8(incoming.content_type)
    try:
        text = incoming.delivery.body.decode()
    except UnicodeDecodeError as error:
        raise InvalidRequest("the body is not UTF-8 text") from error
    try:
        body = EventBody.model_validate(read_json(text, fraction=whole_number))
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, e['loc'])) or 'body'}: {e['msg']}" for e in error.errors(include_url=False)]
        raise InvalidRequest("; ".join(faults)[:1_000]) from error
    return SignedEvent(
        source=incoming.source,
        event_id=incoming.delivery.event_id,
        correlation_id=body.correlation_id,
        request_version=body.request_version,
        answer=body.answer,
    )


def _require_utf8(content_type: str) -> None:
    """Refuse a body that is announced in another encoding: its bytes would mean something else to its sender."""
    _, _, parameters = content_type.lower().partition(";")
    for parameter in parameters.split(";"):
        name, _, value = parameter.strip().partition("=")
        if name.strip() == "charset" and value.strip().strip('"') not in {"utf-8", "utf8"}:
            raise InvalidRequest("the body has to be JSON in UTF-8")
