"""What the documentation tells a sender to do is accepted as it stands: the shell's lines and the Python function."""

import base64
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from local.servers import LOOPBACK
from shared.adapters.webhooks.standard import Delivery, read_secret
from shared.ports.signing_secrets import SigningSecret
from tests.fakes.paperwork import correlation_of
from tests.fakes.signed_event import SECRET
from tests.integration.webhook.conftest import SIGNED, Answer, Door

PAGE = Path(__file__).parents[3] / "docs/webhooks.md"
SECRET_TEXT = "whsec_" + base64.b64encode(SECRET).decode()


def block(heading: str, language: str) -> str:
    """The first block of a language below a heading."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n", maxsplit=1)[1].split("\n## ", maxsplit=1)[0]
    [found] = re.findall(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)[:1]
    return str(found)


@dataclass
class Gateway:
    """An address in front of a webhook, as the gateway is one. What it answers instead of the webhook, first."""

    door: Door
    port: int = 0
    excuses: list[int] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}/webhooks/acme/partner"

    def handle(self, path: str, headers: dict[str, str], body: bytes) -> Answer:
        if self.excuses:
            return Answer(status=self.excuses.pop(0), headers={}, text="{}")
        _, _, tenant, source = path.split("/")
        event = {
            "version": "2.0",
            "headers": headers,
            "pathParameters": {"tenant": tenant, "source": source},
            "body": base64.b64encode(body).decode(),
            "isBase64Encoded": True,
            "requestContext": {"requestId": "request-1"},
        }
        self.answers.append(self.door.send(event))
        return self.answers[-1]


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    """Serve a webhook on loopback, at the machine's own time."""
    door = Door()
    door.world.clock.set(datetime.now(tz=UTC))
    door.open()
    made = Gateway(door)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            answer = made.handle(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
            self.send_response(answer.status)
            self.end_headers()
            self.wfile.write(answer.text.encode())

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
            """Say nothing."""

    server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
    made.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        thread.join(timeout=10)
        server.server_close()


@pytest.fixture
def send_event(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """Take the function from the page as a reader would; it does not have to wait here."""
    names: dict[str, Any] = {}
    exec(block("Send one from Python", "python"), names)  # noqa: S102 - the page's own code is what is tested
    monkeypatch.setattr(names["time"], "sleep", lambda _: None)
    function: Callable[..., dict[str, Any]] = names["send_event"]
    return function


def test_the_python_function_of_the_page_sends_an_event(
    gateway: Gateway, send_event: Callable[..., dict[str, Any]]
) -> None:
    """A sender that copies the function is understood, and told where the task stands."""
    answer = send_event(gateway.url, SECRET_TEXT, dict(SIGNED))

    assert (answer["status"], answer["reception"], answer["task_status"]) == (200, "accepted", "completed")


def test_the_python_function_comes_again_under_the_same_id(
    gateway: Gateway, send_event: Callable[..., dict[str, Any]]
) -> None:
    """B05: after answers that ask for it; what was taken in meanwhile is told as such."""
    gateway.excuses = [503, 502, 429]
    assert send_event(gateway.url, SECRET_TEXT, dict(SIGNED))["reception"] == "accepted"
    [row] = [row for row in gateway.door.world.inbox.values() if row.source == "event:partner"]
    assert row.event_id.startswith("msg_")


def test_the_python_function_does_not_repeat_what_was_refused(
    gateway: Gateway, send_event: Callable[..., dict[str, Any]]
) -> None:
    """A wrong secret stays wrong."""
    answer = send_event(gateway.url, "whsec_" + base64.b64encode(b"x" * 32).decode(), dict(SIGNED))

    assert answer["status"] == 401
    assert len(gateway.answers) == 1


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("openssl")), reason="curl and openssl are not here")
def test_the_shell_s_lines_of_the_page_send_an_event(gateway: Gateway) -> None:
    """The same with openssl and curl: only secret, address and correlation are the reader's own."""
    lines = block("Send one with curl", "sh")
    lines = re.sub(r"^SECRET=.*$", f"SECRET={SECRET_TEXT}", lines, flags=re.MULTILINE)
    lines = re.sub(r"^URL=.*$", f"URL={gateway.url}", lines, flags=re.MULTILINE)
    lines = lines.replace("order-88", correlation_of())

    done = subprocess.run(
        ["/bin/bash", "-c", lines],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={"PATH": "/usr/bin:/bin"},
    )

    assert json.loads(done.stdout)["reception"] == "accepted"


def test_the_example_on_the_page_is_signed_rightly() -> None:
    """A reader who checks their own code against the page's example finds it right."""
    text = PAGE.read_text(encoding="utf-8")
    head, body = text.split("```text\n")[1].split("```")[0].removesuffix("\n").split("\n\n", maxsplit=1)
    headers = dict(line.split(": ", 1) for line in head.splitlines() if ": " in line)
    [secret] = set(re.findall(r"^SECRET=(whsec_\S+)$", block("Send one with curl", "sh"), re.MULTILINE))
    delivery = Delivery(
        event_id=headers["webhook-id"],
        timestamp=headers["webhook-timestamp"],
        signatures=headers["webhook-signature"],
        body=body.encode(),
    )

    assert delivery.is_signed([SigningSecret(key=read_secret(secret))], now=datetime.now(tz=UTC))
    assert not delivery.is_current(now=datetime.now(tz=UTC)), "an example that anybody could send"
