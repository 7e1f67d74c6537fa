"""One HTTP exchange that never hides what it knows about whether something was sent.

Ordinary clients fold three different endings into one error: the request never left, it left and no answer came, or
an answer came. After an effect only the first one permits another try. So here every exchange has a connection of
its own (a kept one can be dead without anybody knowing), no retries, no redirects and no proxy.
"""

import contextlib
import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final
from urllib.parse import quote, urlencode, urlsplit

# Two seconds reach any host that is up; what is left of the exchange belongs to the provider's work.
CONNECT_SECONDS_MAX: Final = 2.0
# The answers of the providers are a few hundred bytes. More is no answer to what was asked.
ANSWER_BYTES_MAX: Final = 65_536

# The local AWS serves plain HTTP, and nothing that is sent to this machine itself crosses a network.
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})


class NotSent(Exception):
    """Nothing left us: no connection could be made. Sending again is safe."""


class NoAnswer(Exception):
    """The request may have arrived and been carried out; no complete answer came. Only the provider knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A complete answer.

    Args:
        content_type: the media type in lower case, without parameters.
    """

    status: int
    content_type: str
    body: bytes


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """The one host that a tool may speak to.

    Args:
        base_url: scheme, host, optional port and path; HTTPS, except to this machine itself.
        exchange_seconds: the longest that a whole exchange may take, from the first name look-up to the last byte.
        clock: seconds that only ever grow.
        tls: whom to trust; the system's own authorities by default.

    Raises:
        ValueError: the base URL is none of that.
    """

    base_url: str
    exchange_seconds: float
    clock: Callable[[], float] = time.monotonic
    tls: ssl.SSLContext | None = None

    def __post_init__(self) -> None:
        url = urlsplit(self.base_url)
        _ = url.port  # a ValueError, if it is no port
        allowed = url.scheme == "https" or (url.scheme == "http" and url.hostname in _LOOPBACK)
        if not allowed or not url.hostname or url.username is not None or url.query or url.fragment:
            msg = "an endpoint is an https URL with a host, without credentials, query and fragment"
            raise ValueError(msg)
        if url.scheme == "https":
            _ = self._trust  # read the authorities now, and not in the time of the first exchange

    @cached_property
    def _trust(self) -> ssl.SSLContext:
        return self.tls or ssl.create_default_context()

    def exchange(
        self,
        method: str,
        path: Sequence[str],
        *,
        headers: Mapping[str, str],
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> Answer:
        """Send one request and wait for the whole answer.

        Args:
            path: segments below the base URL; whatever they hold, they stay segments.

        Raises:
            NotSent: no connection was made; nothing left us.
            NoAnswer: something may have left us, and no complete answer came in time.

        If killed here:
            The request may have been sent or not; only the provider knows.
        """
        ends_at = self.clock() + self.exchange_seconds
        target = self._target(path, query)
        connection = self._connected(ends_at)
        with contextlib.closing(connection), _cut_off(connection.sock, ends_at - self.clock()) as is_cut_off:
            try:
                # From here on bytes may have left, whatever happens.
                connection.request(method, target, body=body, headers={"Connection": "close", **headers})
                answer = _read(connection.getresponse())
            except (OSError, http.client.HTTPException) as error:
                ending = "cut off" if is_cut_off.is_set() else type(error).__name__
                raise NoAnswer(f"no complete answer within {self.exchange_seconds:g} s: {ending}") from error
            if is_cut_off.is_set():
                raise NoAnswer(f"no complete answer within {self.exchange_seconds:g} s: cut off")
        return answer

    def _target(self, path: Sequence[str], query: Mapping[str, str] | None) -> str:
        below = "/".join(quote(segment, safe="") for segment in path)
        target = f"{urlsplit(self.base_url).path.rstrip('/')}/{below}"
        return f"{target}?{urlencode(query)}" if query else target

    def _connected(self, ends_at: float) -> http.client.HTTPConnection:
        url = urlsplit(self.base_url)
        host = url.hostname or ""
        timeout = min(CONNECT_SECONDS_MAX, self.exchange_seconds)
        connection = (
            http.client.HTTPSConnection(host, url.port, timeout=timeout, context=self._trust)
            if url.scheme == "https"
            else http.client.HTTPConnection(host, url.port, timeout=timeout)
        )
        try:
            connection.connect()
        except (OSError, UnicodeError) as error:
            connection.close()
            raise NotSent(f"no connection: {type(error).__name__}") from error
        if self.clock() >= ends_at:
            connection.close()
            raise NotSent("no connection in time")
        return connection


def _read(response: http.client.HTTPResponse) -> Answer:
    if response.length is None and not response.chunked:
        # It would end where the connection ends, and so would one that broke in the middle.
        raise NoAnswer("the answer does not say where it ends")
    body = response.read(ANSWER_BYTES_MAX + 1)
    if len(body) > ANSWER_BYTES_MAX:
        raise NoAnswer("the answer is larger than any answer to this can be")
    # A bounded read ends in silence when the other side hangs up early; this is what is missing then.
    if response.length:
        raise NoAnswer("the answer was cut short")
    return Answer(
        status=response.status,
        content_type=response.headers.get_content_type() if "Content-Type" in response.headers else "",
        body=body,
    )


@contextlib.contextmanager
def _cut_off(sock: socket.socket, seconds: float) -> Iterator[threading.Event]:
    """Hang up after so many seconds, even on a provider that sends one byte at a time.

    A socket's own timeout starts anew with every byte.
    """
    is_cut_off = threading.Event()

    def hang_up() -> None:
        is_cut_off.set()
        with contextlib.suppress(OSError):
            # The plain socket's shutdown: the TLS one would take its state away from under the reader.
            socket.socket.shutdown(sock, socket.SHUT_RDWR)

    sock.settimeout(max(seconds, 0.001))
    timer = threading.Timer(seconds, hang_up)
    timer.daemon = True
    timer.start()
    try:
        yield is_cut_off
    finally:
        timer.cancel()
