"""What the provider does with a request: who asks, what is known already, whether it may be, record, answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Final

from sandbox.credentials import Credentials
from sandbox.faults import Faults, Moment
from sandbox.fields import BODY_BYTES_MAX, KEY, checked, digest, parsed
from sandbox.ledger import AlreadyRecorded, Ledger, Record
from sandbox.problems import PROBLEM_TYPE, Problem
from sandbox.resources import RESOURCES, Recognises, Resource
from sandbox.vendors import VENDORS


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request, as the gateway handed it over.

    Args:
        headers: by lower-case name.
    """

    method: str
    path: tuple[str, ...]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """One answer."""

    status: int
    body: str
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """The provider.

    Args:
        now: the current UTC instant.
        new_id: makes an id from a prefix, never the same twice.
        sleep: holds an answer for that many seconds.
    """

    ledger: Ledger
    faults: Faults
    credentials: Credentials
    now: Callable[[], datetime]
    new_id: Callable[[str], str]
    sleep: Callable[[float], None]

    def answer(self, request: Request) -> Response:
        """Answer one request; a refusal is an answer too."""
        try:
            self.credentials.demand(request.headers.get("authorization"))
            return self._route(request)
        except Problem as problem:
            return Response(status=problem.status, body=problem.document(), content_type=PROBLEM_TYPE)

    def _route(self, request: Request) -> Response:
        if request.path == ("faults",):
            return self._faults(request)
        if request.path[:1] == ("vendors",):
            return _vendors(request)
        resource = RESOURCES.get(request.path[0]) if request.path else None
        if resource is None or len(request.path) > _DEPTH_MAX:
            raise Problem(HTTPStatus.NOT_FOUND, "no_such_route", "there is nothing at this path")
        if request.method == "POST" and len(request.path) == 1:
            return self._post(resource, request)
        if request.method == "GET":
            return self._get(resource, request)
        raise _wrong_method()

    def _faults(self, request: Request) -> Response:
        if request.method == "PUT":
            self.faults.order(parsed(request.body))
        elif request.method == "DELETE":
            self.faults.clear()
        elif request.method != "GET":
            raise _wrong_method()
        return _shown(HTTPStatus.OK, self.faults.ordered())

    def _get(self, resource: Resource, request: Request) -> Response:
        if len(request.path) == 1:
            reference = request.query.get("reference")
            if resource.recognises is Recognises.REFERENCE and reference is not None:
                records = self.ledger.under_reference(resource.collection, _well_formed(reference, "reference"))
            else:
                records = self.ledger.everything(resource.collection)
            return _shown(HTTPStatus.OK, {"items": [record.view() for record in records]})
        if resource.recognises is not Recognises.KEY:
            raise Problem(HTTPStatus.NOT_FOUND, "no_such_route", "nothing of this collection can be asked for by key")
        record = self.ledger.find(resource.collection, _well_formed(request.path[1], "key"))
        if record is None:
            raise Problem(HTTPStatus.NOT_FOUND, "not_found", "this key has not been used")
        return _shown(HTTPStatus.OK, record.view())

    def _post(self, resource: Resource, request: Request) -> Response:
        """Carry out a request.

        A known key is answered before the body is judged: whoever is refused for a body can conclude that its
        key has not been used.
        """
        if len(request.body) > BODY_BYTES_MAX:
            raise Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body_too_large", f"at most {BODY_BYTES_MAX} bytes")
        key = self._key(resource, request)
        known = self.ledger.find(resource.collection, key) if key is not None else None
        if known is not None:
            response = _repeated(known, digest(request.body))
        else:
            fields = checked(parsed(request.body), resource.fields)
            self._strike(resource, Moment.BEFORE_RECORDING)
            response = self._record(resource, key, fields, digest(request.body))
        self._strike(resource, Moment.AFTER_RECORDING)
        return response

    def _key(self, resource: Resource, request: Request) -> str | None:
        if resource.recognises is not Recognises.KEY:
            return None
        key = request.headers.get("idempotency-key")
        if key is None:
            raise Problem(HTTPStatus.BAD_REQUEST, "key_required", "send an Idempotency-Key")
        return _well_formed(key, "Idempotency-Key")

    def _record(self, resource: Resource, key: str | None, fields: Mapping[str, object], body_digest: str) -> Response:
        record = Record(
            id=self.new_id(resource.prefix),
            key=key,
            digest=body_digest,
            fields=fields,
            status=resource.status,
            recorded_at=_as_text(self.now()),
        )
        try:
            self.ledger.add(resource, record)
        except AlreadyRecorded as already:
            return _repeated(already.record, body_digest)
        return _shown(HTTPStatus.CREATED, record.view())

    def _strike(self, resource: Resource, moment: Moment) -> None:
        fault = self.faults.strike(resource.collection, moment)
        if fault is None:
            return
        if fault.hold_seconds is not None:
            self.sleep(fault.hold_seconds)
        if fault.answer_status is not None:
            raise Problem(HTTPStatus(fault.answer_status), "fault_on_order", "this answer was ordered")


# A collection, or one key in it.
_DEPTH_MAX: Final = 2


def _vendors(request: Request) -> Response:
    if len(request.path) > _DEPTH_MAX:
        raise Problem(HTTPStatus.NOT_FOUND, "no_such_route", "there is nothing at this path")
    if request.method != "GET":
        raise _wrong_method()
    if len(request.path) == 1:
        return _shown(HTTPStatus.OK, {"items": [vendor.view() for vendor in VENDORS.values()]})
    vendor = VENDORS.get(request.path[1])
    if vendor is None:
        raise Problem(HTTPStatus.NOT_FOUND, "not_found", "no vendor has this name")
    return _shown(HTTPStatus.OK, vendor.view())


def _repeated(record: Record, body_digest: str) -> Response:
    if record.digest != body_digest:
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "idempotency_key_reused", "the key was used with another body")
    return _shown(HTTPStatus.OK, record.view())


def _well_formed(key: str, name: str) -> str:
    if not KEY.accepts(key):
        raise Problem(HTTPStatus.BAD_REQUEST, "key_malformed", f"{name} must be {KEY.rule}")
    return key


def _shown(status: HTTPStatus, content: Mapping[str, object]) -> Response:
    return Response(status=status, body=json.dumps(content))


def _wrong_method() -> Problem:
    return Problem(HTTPStatus.METHOD_NOT_ALLOWED, "method_not_allowed", "this cannot be done here")


def _as_text(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
