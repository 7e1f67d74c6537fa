"""Refusals of the provider, as problem documents with a stable code for machines.

A refusal is answered before anything is recorded. The codes are part of the provider's contract: a caller may
conclude from the code, and only from the code, that nothing happened.
"""

import json
from http import HTTPStatus
from typing import Final

PROBLEM_TYPE: Final = "application/problem+json"


class Problem(Exception):
    """The provider refuses, and says why in a form that a machine can act on.

    Args:
        status: the HTTP status.
        code: the stable word a caller may branch on.
        detail: one sentence for a person; never a value from the request.
    """

    def __init__(self, status: HTTPStatus, code: str, detail: str) -> None:
        super().__init__(f"{status.value} {code}: {detail}")
        self.status = status
        self.code = code
        self.detail = detail

    def document(self) -> str:
        """Render the problem document (RFC 9457)."""
        return json.dumps(
            {
                "type": f"urn:sandbox-provider:problem:{self.code}",
                "title": self.status.phrase,
                "status": self.status.value,
                "code": self.code,
                "detail": self.detail,
            }
        )
