"""The API's real handler, policies and workflows over a world of fakes, called as the gateway calls it."""

import base64
import io
import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from functions.api.call import ApiParts
from functions.api.handler import answering
from shared.adapters.cedar.authoriser import CedarAuthoriser, PolicyFault
from shared.domain.identity import PrincipalRef
from shared.runtime.claims import Expected
from shared.runtime.observability import logger
from shared.usecases.engine import ApiDeps, Records, Rights
from shared.workflows.registry import discover
from tests.fakes.calls import Calls
from tests.fakes.process import Process
from tests.fakes.store import World

ISSUER = "https://issuer.test/pool"
CLIENT = "app-1"
PEOPLE: Mapping[str, tuple[str, set[str]]] = {
    "clerk-1": ("acme", {"refund_clerk"}),
    "clerk-2": ("acme", {"refund_clerk"}),
    "manager-7": ("acme", {"refund_approver"}),
    "boss-9": ("acme", {"refund_clerk", "refund_approver"}),
    "intern-2": ("acme", {"viewer"}),
    "operator-1": ("acme", {"operator"}),
    "guest-3": ("acme", set()),
    "clerk-g": ("globex", {"refund_clerk"}),
    "manager-g": ("globex", {"refund_approver"}),
}
REFUND: Mapping[str, Any] = {"amount_minor": 45_000, "currency": "EUR", "order_reference": "A-1001"}


@dataclass(frozen=True)
class Answer:
    """What the gateway would send back."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def code(self) -> str:
        assert self.headers["Content-Type"] == "application/problem+json"
        assert self.json["status"] == self.status
        return str(self.json["code"])


class Context:
    """What the runtime tells about an invocation."""

    function_name = "api"
    memory_limit_in_mb = 512
    invoked_function_arn = "arn:aws:lambda:eu-central-1:111122223333:function:api"
    aws_request_id = "invocation-1"


def an_event(
    method: str,
    path: str,
    *,
    claims: Mapping[str, object] | None = None,
    body: object = None,
    raw: str | None = None,
    encoded: bool = False,
    headers: Mapping[str, str] | None = None,
    query: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Make an event of an HTTP API in payload format 2.0. `raw` is sent instead of `body` as it is."""
    text = raw if raw is not None else None if body is None else json.dumps(body)
    if encoded and text is not None:
        text = base64.b64encode(text.encode()).decode()
    authorizer = {} if claims is None else {"authorizer": {"jwt": {"claims": dict(claims), "scopes": None}}}
    return {
        "version": "2.0",
        "routeKey": f"{method} {path}",
        "rawPath": path,
        "rawQueryString": "&".join(f"{name}={value}" for name, value in (query or {}).items()),
        "headers": {
            **({"content-type": "application/json"} if text is not None else {}),
            **{name.lower(): value for name, value in (headers or {}).items()},
        },
        **({"queryStringParameters": dict(query)} if query else {}),
        "requestContext": {
            **authorizer,
            "accountId": "111122223333",
            "apiId": "api-1",
            "domainName": "api.test",
            "http": {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1", "userAgent": "t"},
            "requestId": "request-1",
            "routeKey": f"{method} {path}",
            "stage": "$default",
            "time": "09/Oct/2026:12:00:00 +0000",
            "timeEpoch": 1791547200000,
        },
        **({"body": text} if text is not None else {}),
        "isBase64Encoded": encoded,
    }


@dataclass
class Api:
    """The API over one world; every call is a warm invocation of the same process."""

    world: World = field(default_factory=World)
    calls: Calls = field(default_factory=Calls)
    audited: list[PolicyFault] = field(default_factory=list)

    def __post_init__(self) -> None:
        for subject, (tenant, roles) in PEOPLE.items():
            self.world.authority.grant(PrincipalRef(issuer=ISSUER, subject=subject), tenant=tenant, roles=roles)
        process = Process(self.world, self.calls)
        workflows = discover()
        self.parts = ApiParts(
            deps=ApiDeps(
                tasks=Records(
                    records=process.records,
                    sealer=process.sealer,
                    clock=process.clock,
                    ids=process.ids,
                    workflows=workflows,
                ),
                rights=Rights(
                    authority=process.authority,
                    authoriser=CedarAuthoriser(workflows, audit=self.audited.append),
                ),
                inbox=process.inbox,
                waits=process.waits,
                ledger=process.ledger,
                evidence=process.evidence,
                model_id="model-1",
            ),
            expected=Expected(issuer=ISSUER, client_id=CLIENT),
        )
        self._handler = answering(lambda: self.parts)

    def claims(self, who: str, **changes: object) -> dict[str, object]:
        """Make the claims of a good access token."""
        now = self.world.clock.now()
        claims: dict[str, object] = {
            "iss": ISSUER,
            "sub": who,
            "client_id": CLIENT,
            "token_use": "access",
            "auth_time": str(int((now - timedelta(minutes=5)).timestamp())),
            "exp": str(int((now + timedelta(hours=1)).timestamp())),
        }
        return {name: value for name, value in (claims | changes).items() if value is not None}

    def send(self, event: Mapping[str, Any]) -> Answer:
        """Hand an event to the function."""
        result = self._handler(dict(event), Context())
        return Answer(status=result["statusCode"], headers=result["headers"], text=result["body"])

    def call(self, who: str, method: str, path: str, **parts: Any) -> Answer:
        """Call as somebody with a good token."""
        return self.send(an_event(method, path, claims=self.claims(who), **parts))

    def start(self, who: str = "clerk-1", *, key: str = "k-1", workflow: str = "refund", **request: Any) -> Answer:
        """Start a refund of 450.00, or as `request` changes it."""
        body = {"workflow": workflow, "request": {**REFUND, **request}}
        return self.call(who, "POST", "/tasks", body=body, headers={"Idempotency-Key": key})

    def started(self, **request: Any) -> Mapping[str, Any]:
        """Start a refund that waits for its approval."""
        answer = self.start(**request)
        assert answer.status == 201, answer.text
        assert answer.json["status"] == "waiting_approval"
        return dict(answer.json)

    def snapshot(self) -> dict[str, object]:
        """Copy everything that is stored about tasks."""
        world = self.world
        with world:
            return {
                name: dict(getattr(world, name))
                for name in (
                    "heads",
                    "checkpoints",
                    "waits",
                    "tokens",
                    "actions",
                    "inbox",
                    "outbox",
                    "leases",
                    "evidence",
                )
            }


@pytest.fixture
def api() -> Api:
    """Make an API over a new world with the people of two tenants."""
    return Api()


@dataclass
class Log:
    """What the function wrote into its log."""

    stream: io.StringIO = field(default_factory=io.StringIO)

    @property
    def text(self) -> str:
        return self.stream.getvalue()

    def lines(self, message: str) -> list[dict[str, Any]]:
        """Return the structured lines with this message."""
        lines = [json.loads(line) for line in self.text.splitlines()]
        return [line for line in lines if line["message"] == message]


@pytest.fixture
def log() -> Iterator[Log]:
    """Read what the function logs from here on."""
    kept = Log()
    handler = logger.registered_handler
    assert isinstance(handler, logging.StreamHandler)
    before = handler.setStream(kept.stream)
    yield kept
    handler.setStream(before)


@pytest.fixture
def task(api: Api) -> Mapping[str, Any]:
    """Start a refund of 450.00 that waits for a manager."""
    return api.started()


def page_of(task: Mapping[str, Any]) -> str:
    """Return the address of the page of a task's last approval."""
    return f"/tasks/{task['task_id']}/approvals/{task['approvals'][-1]['approval_id']}"


def decision_of(task: Mapping[str, Any]) -> str:
    """Return the address that decides a task's last approval."""
    return f"{page_of(task)}/decision"
