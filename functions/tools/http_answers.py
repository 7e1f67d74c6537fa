"""Read what a provider answered, and believe of it only what can be held against what was asked."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from shared.adapters.http.endpoint import Answer
from shared.domain.action import Scalar
from shared.domain.errors import OutcomeUnknown
from shared.domain.identity import REFERENCE_PATTERN

PROBLEM_TYPE: Final = "application/problem+json"
# What the ledger keeps of a record is for people and digests; a longer text is no fact but a document.
FACT_CHARACTERS_MAX: Final = 200
_CODE: Final = re.compile(r"[a-z][a-z0-9_]{0,49}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderRecord:
    """The provider's record of what was asked."""

    id: str
    status: str
    fields: Mapping[str, Scalar]


def content_of(answer: Answer) -> Mapping[str, Any]:
    """Read an answer as a JSON object.

    Raises:
        OutcomeUnknown: it is none.
    """
    try:
        content = json.loads(answer.body)
    except (ValueError, RecursionError) as error:
        raise OutcomeUnknown("the answer is no JSON") from error
    if not isinstance(content, dict):
        raise OutcomeUnknown("the answer is no JSON object")
    return content


def record_of(content: object, expected: Mapping[str, Scalar]) -> ProviderRecord:
    """Read a record and hold it against what was asked: another record under our key is no success of ours.

    Args:
        expected: fields with the values that were sent, compared with their types.

    Raises:
        OutcomeUnknown: no record, an unusable one, or one of something else.
    """
    if not isinstance(content, dict):
        raise OutcomeUnknown("the answer is no record")
    for name, value in expected.items():
        found = content.get(name)
        if type(found) is not type(value) or found != value:
            raise OutcomeUnknown(f"the provider's record differs from what was asked: {name}")
    identity, status = content.get("id"), content.get("status")
    if not isinstance(identity, str) or re.match(REFERENCE_PATTERN, identity) is None or not isinstance(status, str):
        raise OutcomeUnknown("the provider's record has no usable id or status")
    return ProviderRecord(id=identity, status=status, fields={n: v for n, v in content.items() if _is_fact(v)})


def problem_code_of(answer: Answer) -> str | None:
    """Answer the stable code of a problem document, or None if the answer has none that is one plain word."""
    if answer.content_type != PROBLEM_TYPE:
        return None
    try:
        code = content_of(answer).get("code")
    except OutcomeUnknown:
        return None
    return code if isinstance(code, str) and _CODE.fullmatch(code) else None


def _is_fact(value: object) -> bool:
    return isinstance(value, int) or (isinstance(value, str) and len(value) <= FACT_CHARACTERS_MAX)
