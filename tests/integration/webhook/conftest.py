"""The webhook's real handler over a world of fakes in which a task waits for its papers."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest

from functions.webhook.handler import receiving
from shared.ports.signing_secrets import SigningSecret
from shared.runtime.wiring import WebhookParts
from shared.usecases.engine import WebhookDeps
from shared.workflows.registry import discover
from tests.fakes.calls import Calls
from tests.fakes.paperwork import correlation_of, paperwork
from tests.fakes.signed_event import OTHER_SECRET, SECRET, Sender
from tests.fakes.signing_secrets import FakeSigningSecrets
from tests.fakes.story import Story

SIGNED: Mapping[str, object] = {"correlation_id": correlation_of(), "answer": {"signed": True}}
NOT_SIGNED: Mapping[str, object] = {"correlation_id": correlation_of(), "answer": {"signed": False}}
PARTNER, POST, STRANGER = Sender(), Sender(source="post", secret=OTHER_SECRET), Sender(secret=b"s" * 32)


@dataclass(frozen=True)
class Answer:
    """What the gateway would send back."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


class Context:
    """What the runtime tells about an invocation."""

    function_name = "webhook"
    memory_limit_in_mb = 512
    invoked_function_arn = "arn:aws:lambda:eu-central-1:111122223333:function:webhook"
    aws_request_id = "invocation-1"


@dataclass
class Door:
    """The webhook of one world; every delivery is a warm invocation of the same process."""

    calls: Calls = field(default_factory=Calls)

    def __post_init__(self) -> None:
        self.story = Story(paperwork(), discover()["refund"], calls=self.calls)
        self.world = self.story.world
        self.secrets = FakeSigningSecrets()
        self.secrets.stored[("acme", "partner")] = (SigningSecret(key=SECRET),)
        self.secrets.stored[("acme", "post")] = (SigningSecret(key=OTHER_SECRET),)
        self.secrets.stored[("globex", "partner")] = (SigningSecret(key=SECRET),)
        self._handler = receiving(self.parts)

    def parts(self) -> WebhookParts:
        """Wire the function over fresh fakes."""
        process = self.story.machine.process()
        deps = WebhookDeps(
            tasks=self.story.machine.records(process),
            waits=process.waits,
            inbox=process.inbox,
            alarm=self.world.alarms.append,
        )
        return WebhookParts(deps=deps, secrets=self.secrets)

    @property
    def now(self) -> datetime:
        return self.world.clock.now()

    def open(self, subject: str = "S-1") -> None:
        """Start a task that waits for its papers."""
        self.story.start(workflow="paperwork", request={"subject": subject})

    def send(self, event: Mapping[str, Any]) -> Answer:
        """Hand an event to the function, and leave the machine where it is."""
        result = self._handler(dict(event), Context())
        return Answer(status=result["statusCode"], headers=result["headers"], text=result["body"])

    def says(
        self,
        body: bytes | Mapping[str, object] = SIGNED,
        event_id: str = "msg_1",
        *,
        by: Sender = PARTNER,
        late: timedelta = timedelta(),
        **parts: Any,
    ) -> Answer:
        """Send what somebody says, signed now (or a while ago)."""
        return self.send(by.event(body, at=self.now - late, event_id=event_id, **parts))

    def stored(self) -> dict[str, object]:
        """Copy everything that is stored."""
        names = ("heads", "checkpoints", "waits", "tokens", "actions", "inbox", "outbox", "leases", "evidence")
        with self.world as world:
            return {name: dict(getattr(world, name)) for name in names}


@pytest.fixture
def door() -> Door:
    """Make a webhook before which one task waits."""
    made = Door()
    made.open()
    assert made.story.status == "waiting_event"
    return made


@pytest.fixture
def quiet_door() -> Door:
    """Make a webhook before which nothing waits."""
    return Door()


def b64(raw: bytes) -> str:
    """Encode as the gateway does."""
    return base64.b64encode(raw).decode()
