"""A provider on loopback that does what a test tells it to, down to the single byte."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from functions.tools.http_call import Provider
from shared.adapters.http.endpoint import Endpoint
from shared.adapters.secretsmanager.live_secret import LiveSecret

API_KEY = "a-key-for-tests"
SECRET = "holdfast-test-payments"

Script = Callable[[socket.socket, "Request"], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What arrived."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


def respond(status: int, content: object, *, content_type: str = "application/json", extra: str = "") -> Script:
    """Make a script that answers once and completely; bytes are sent as they are."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()

    def script(connection: socket.socket, _request: Request) -> None:
        head = f"HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n{extra}\r\n"
        connection.sendall(head.encode() + body)

    return script


def problem(status: int, code: str) -> Script:
    """Make a script that answers with a problem document."""
    return respond(status, {"code": code, "status": status}, content_type="application/problem+json")


@dataclass(slots=True)
class Counterparty:
    """Listens on loopback, notes every request and plays the script of the moment.

    ``released`` ends scripts that wait, so that no thread outlives its test.
    """

    script: Script = field(default_factory=lambda: respond(500, {}))
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    released: threading.Event = field(default_factory=threading.Event)
    listener: socket.socket = field(init=False)
    threads: list[threading.Thread] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self._spawn(self._accept)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.listener.getsockname()[1])

    @property
    def url(self) -> str:
        """Its base URL, with a path below which everything lies, as a stage has one."""
        return f"http://127.0.0.1:{self.port}/base/$default/"

    def close(self) -> None:
        """Stop listening and wait until every thread has ended; once is enough."""
        if self.released.is_set():
            return
        self.released.set()
        # Closing alone does not wake a thread that waits for a connection.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for thread in self.threads:
            thread.join(timeout=10)
            assert not thread.is_alive()

    def stay_silent(self, _connection: socket.socket, _request: Request) -> None:
        """Play dead until the test is over."""
        self.released.wait(20)

    def _spawn(self, work: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self.threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            self._spawn(self._talk, connection)

    def _talk(self, connection: socket.socket) -> None:
        with connection:
            try:
                request = _received(connection)
                self.requests.append(request)
                self.script(connection, request)
            except OSError:
                return


def _received(connection: socket.socket) -> Request:
    """Read one request; a caller that hangs up before it has asked is an `OSError` like any other."""
    with connection.makefile("rb") as stream:
        first = stream.readline().decode()
        if not first:
            raise ConnectionAbortedError
        method, target, _ = first.split(" ")
        headers: dict[str, str] = {}
        while line := stream.readline().decode().strip():
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        body = stream.read(int(headers.get("content-length", "0")))
    return Request(method=method, target=target, headers=headers, body=body)


class SecretStore:
    """Holds one secret, counts reads, can be down."""

    def __init__(self) -> None:
        self.text: str | None = API_KEY
        self.reads = 0
        self.down = False

    def get_secret_value(self, *, SecretId: str) -> dict[str, Any]:  # noqa: N803 -- the real client's word
        assert SecretId == SECRET
        self.reads += 1
        if self.down:
            raise EndpointConnectionError(endpoint_url="loopback")
        return {} if self.text is None else {"SecretString": self.text}


class Clock:
    """Seconds that a test moves."""

    def __init__(self) -> None:
        self.seconds = 1_000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def counterparty() -> Iterator[Counterparty]:
    """Listen until the test is over."""
    counterparty = Counterparty()
    yield counterparty
    counterparty.close()


@pytest.fixture
def secrets() -> SecretStore:
    """Hold the API key."""
    return SecretStore()


@pytest.fixture
def clock() -> Clock:
    """Stand still until told otherwise."""
    return Clock()


@pytest.fixture
def provider(counterparty: Counterparty, secrets: SecretStore, clock: Clock) -> Provider:
    """Wire a tool to the counterparty; an exchange may take half a second."""
    return provider_at(counterparty.url, secrets, clock)


def provider_at(url: str, secrets: SecretStore, clock: Clock, *, exchange_seconds: float = 0.5) -> Provider:
    """Wire a tool to whatever is at the URL."""
    client: Any = secrets
    return Provider(
        endpoint=Endpoint(base_url=url, exchange_seconds=exchange_seconds),
        secret=LiveSecret(client, SECRET, clock=clock),
    )
