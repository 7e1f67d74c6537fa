"""Clients for the services other than DynamoDB: on moto in process, strictly stubbed, or on a real socket."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import boto3
from botocore.stub import Stubber

from local.servers import LOOPBACK
from shared.adapters.aws import LIMITS, Limits

REGION = "us-east-1"
# For services that the product itself never calls.
_ORDINARY = Limits(read_seconds=5)


@cache
def client(service: str, endpoint: str | None = None, limits: Limits | None = None) -> Any:
    """Make a client with the limits that the product's own one has, once: the making takes longer than a test."""
    make: Callable[..., Any] = _session().client
    return make(service, endpoint_url=endpoint, config=(limits or LIMITS.get(service, _ORDINARY)).config())


@cache
def _session() -> boto3.Session:
    return boto3.Session(aws_access_key_id="test", aws_secret_access_key="test", region_name=REGION)


@contextmanager
def stubbed(service: str) -> Iterator[tuple[Any, Stubber]]:
    """Make a client that sends nothing and answers as it was told, in order, to the end."""
    made = client(service)
    with Stubber(made) as stub:
        yield made, stub
        stub.assert_no_pending_responses()


@dataclass(slots=True)
class Listener:
    """A server on loopback that answers every request with the same bytes, or with silence.

    `requests` counts the requests that arrived whole enough to have a first line.
    """

    answer: bytes | None
    port: int = 0
    requests: int = 0
    _held: list[socket.socket] = field(default_factory=list)
    _counted: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://{LOOPBACK}:{self.port}"

    def serve(self, server: socket.socket) -> None:
        """Take connections until the server is closed."""
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=self._take, args=(connection,), daemon=True).start()

    def _take(self, connection: socket.socket) -> None:
        if not connection.recv(65_536):
            return
        with self._counted:
            self.requests += 1
            self._held.append(connection)
        if self.answer is not None:
            connection.sendall(self.answer)
            connection.close()

    def let_go(self) -> None:
        """Close what is still held."""
        for connection in self._held:
            connection.close()


@contextmanager
def listening(answer: bytes | None) -> Iterator[Listener]:
    """Run a listener for as long as the block lasts. Without an answer it takes requests and says nothing."""
    with socket.socket() as server:
        server.bind((LOOPBACK, 0))
        server.listen(16)
        listener = Listener(answer=answer, port=server.getsockname()[1])
        thread = threading.Thread(target=listener.serve, args=(server,), daemon=True)
        thread.start()
        try:
            yield listener
        finally:
            listener.let_go()
            # Wakes the thread that waits for the next connection.
            server.shutdown(socket.SHUT_RDWR)
            thread.join(timeout=10)
