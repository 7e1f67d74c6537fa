"""Taking in a request: strict validation by the workflow's model, and outside words set apart as evidence."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from shared.domain.action import Arguments
from shared.domain.errors import InvalidRequest, RequestTooLarge
from shared.domain.workflow import Workflow

# A letter of several pages. What is longer belongs into the evidence bucket by another way.
UNTRUSTED_BYTES_MAX: Final = 64_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestForm:
    """A valid request: the record, and the untrusted text that came with it."""

    record: Arguments
    untrusted: str | None


def read_request(workflow: Workflow, request: Mapping[str, object]) -> RequestForm:
    """Validate a request.

    Raises:
        InvalidRequest: names the fields that are wrong; nothing was stored.
        RequestTooLarge: the untrusted text is too long, counted in bytes (B59).
    """
    fields = dict(request)
    untrusted = fields.pop(workflow.untrusted_field, None) if workflow.untrusted_field else None
    if untrusted is not None and not isinstance(untrusted, str):
        msg = f"{workflow.untrusted_field}: expected text"
        raise InvalidRequest(msg)
    if untrusted is not None and len(untrusted.encode(errors="replace")) > UNTRUSTED_BYTES_MAX:
        msg = f"{workflow.untrusted_field}: at most {UNTRUSTED_BYTES_MAX} bytes"
        raise RequestTooLarge(msg)
    if untrusted is not None and any("\ud800" <= character <= "\udfff" for character in untrusted):
        msg = f"{workflow.untrusted_field}: half a character (a lone surrogate)"
        raise InvalidRequest(msg)
    return RequestForm(record=workflow.read_request(fields), untrusted=untrusted or None)
