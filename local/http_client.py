"""A plain HTTP client for what was deployed: one request, one answer, whatever its status."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

# The gateway gives up after 30 s; the emulator has no such bound.
ANSWER_SECONDS_MAX: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back.

    Args:
        headers: with names in lower case.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:  # noqa: ANN401 - any JSON value
        """The body as JSON.

        Raises:
            ValueError: it is none.
        """
        return json.loads(self.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpClient:
    """Requests below one base address, with some headers on each.

    An answer of any status is returned. ``OSError`` and ``http.client.HTTPException`` mean that none came.
    """

    base: str
    headers: Mapping[str, str] = field(default_factory=dict)

    def request(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        raw: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send one request.

        Args:
            path: with a slash in front, and a query if there is one.
            body: sent as JSON unless it is ``None``.
            raw: sent as it is, in place of ``body``.
        """
        url = urlsplit(self.base)
        content = raw if raw is not None else None if body is None else json.dumps(body).encode()
        kind = {} if content is None else {"content-type": "application/json"}
        connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=ANSWER_SECONDS_MAX)
        try:
            connection.request(method, url.path + path, content, {**kind, **self.headers, **(headers or {})})
            answer = connection.getresponse()
            named = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(status=answer.status, headers=named, body=answer.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        """``GET``; header names are given with underscores."""
        return self.request("GET", path, headers=_dashed(headers))

    def post(self, path: str, body: object, **headers: str) -> Answer:
        """``POST`` of a JSON value."""
        return self.request("POST", path, body=body, headers=_dashed(headers))

    def patch(self, path: str, body: object, **headers: str) -> Answer:
        """``PATCH`` with a JSON value."""
        return self.request("PATCH", path, body=body, headers=_dashed(headers))

    def put(self, path: str, body: object, **headers: str) -> Answer:
        """``PUT`` of a JSON value."""
        return self.request("PUT", path, body=body, headers=_dashed(headers))

    def delete(self, path: str, **headers: str) -> Answer:
        """``DELETE``."""
        return self.request("DELETE", path, headers=_dashed(headers))


def _dashed(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}
