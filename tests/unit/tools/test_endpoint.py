"""One exchange: what it knows about having sent something, it says."""

import datetime as dt
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from shared.adapters.http.endpoint import ANSWER_BYTES_MAX, Answer, Endpoint, NoAnswer, NotSent
from tests.unit.tools.conftest import Counterparty, Request, respond


def endpoint(url: str, *, exchange_seconds: float = 0.5) -> Endpoint:
    """Make an endpoint that gives up soon."""
    return Endpoint(base_url=url, exchange_seconds=exchange_seconds)


def ask(counterparty: Counterparty, *, exchange_seconds: float = 0.5) -> Answer:
    """Post something to the counterparty."""
    return endpoint(counterparty.url, exchange_seconds=exchange_seconds).exchange(
        "POST", ("refunds",), headers={"X-Test": "yes"}, body=b'{"a": 1}'
    )


def closed_port() -> int:
    """Find a port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def test_an_answer_is_returned_as_it_came(counterparty: Counterparty) -> None:
    """Status, media type and body of a complete answer, whatever the status."""
    counterparty.script = respond(418, b"teapot", content_type="Text/Plain; charset=utf-8")

    assert ask(counterparty) == Answer(status=418, content_type="text/plain", body=b"teapot")
    [request] = counterparty.requests
    assert (request.method, request.target, request.body) == ("POST", "/base/$default/refunds", b'{"a": 1}')
    assert request.headers["host"] == f"127.0.0.1:{counterparty.port}"
    assert request.headers["x-test"] == "yes"


def test_segments_stay_segments_and_the_query_is_encoded(counterparty: Counterparty) -> None:
    """Nothing in a key or a reference can lead to another path or another host."""
    counterparty.script = respond(200, {})
    endpoint(counterparty.url).exchange(
        "GET", ("refunds", "../../@other:1/x?y#z%2F"), headers={}, query={"reference": "a&b=c/ü"}
    )

    assert counterparty.requests[0].target == (
        "/base/$default/refunds/..%2F..%2F%40other%3A1%2Fx%3Fy%23z%252F?reference=a%26b%3Dc%2F%C3%BC"
    )


def test_no_connection_means_nothing_was_sent() -> None:
    """A refused connection is proof that nothing left us."""
    with pytest.raises(NotSent):
        endpoint(f"http://127.0.0.1:{closed_port()}").exchange("POST", ("x",), headers={}, body=b"{}")


def test_an_unknown_host_means_nothing_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that does not resolve is proof that nothing left us."""

    def no_such_name(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    monkeypatch.setattr(socket, "getaddrinfo", no_such_name)
    with pytest.raises(NotSent):
        endpoint("https://payments.invalid").exchange("POST", ("x",), headers={}, body=b"{}")


def test_a_connection_that_took_all_the_time_is_not_used(counterparty: Counterparty) -> None:
    """Without time for an answer it is better to send nothing: then everybody knows where they stand."""
    instants = iter([0.0, 8.0])
    slow = Endpoint(base_url=counterparty.url, exchange_seconds=8, clock=lambda: next(instants))

    with pytest.raises(NotSent):
        slow.exchange("POST", ("x",), headers={}, body=b"{}")
    assert counterparty.requests == []


def test_a_reset_after_sending_leaves_it_open(counterparty: Counterparty) -> None:
    """The request may have been carried out before the connection broke."""

    def reset(connection: socket.socket, _: Request) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        connection.close()

    counterparty.script = reset
    with pytest.raises(NoAnswer):
        ask(counterparty)
    assert len(counterparty.requests) == 1
    assert counterparty.connections == 1, "a client of ours must not try again by itself"


def test_hanging_up_without_a_word_leaves_it_open(counterparty: Counterparty) -> None:
    """A connection that is closed in silence says nothing about what was done."""
    counterparty.script = lambda connection, _: connection.close()
    with pytest.raises(NoAnswer):
        ask(counterparty)
    assert counterparty.connections == 1


def test_silence_ends_in_time_and_leaves_it_open(counterparty: Counterparty) -> None:
    """A timeout is no failure: the provider may be at work."""
    counterparty.script = counterparty.stay_silent
    started = time.monotonic()
    with pytest.raises(NoAnswer):
        ask(counterparty, exchange_seconds=0.3)
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\nX-Slow: ", b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n"])
def test_one_byte_at_a_time_does_not_stretch_the_limit(counterparty: Counterparty, head: bytes) -> None:
    """The limit holds for the whole exchange, not for each byte of it."""

    def drip(connection: socket.socket, _: Request) -> None:
        connection.sendall(head)
        while not counterparty.released.wait(0.02):
            connection.sendall(b"x")

    counterparty.script = drip
    started = time.monotonic()
    with pytest.raises(NoAnswer):
        ask(counterparty, exchange_seconds=0.3)
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    "sent",
    [
        b'HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n{"id": "rf_1"}',
        b'HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n1f\r\n{"id": "rf_1"}',
        b"HTTP/1.1 201 Crea",
        b'HTTP/1.1 201 Created\r\n\r\n{"id": "rf_1"}',
        b"SMTP ready\r\n\r\n",
        b"HTTP/1.1 20x OK\r\n\r\n",
    ],
)
def test_an_answer_cut_short_leaves_it_open(counterparty: Counterparty, sent: bytes) -> None:
    """Half an answer is none, even when what came looks like a success."""
    counterparty.script = lambda connection, _: connection.sendall(sent)
    with pytest.raises(NoAnswer):
        ask(counterparty)


def test_an_answer_without_bound_leaves_it_open(counterparty: Counterparty) -> None:
    """An answer larger than any answer can be is not read to its end."""
    counterparty.script = respond(200, b"x" * (ANSWER_BYTES_MAX + 1))
    with pytest.raises(NoAnswer):
        ask(counterparty)
    counterparty.script = respond(200, b"x" * ANSWER_BYTES_MAX)
    assert len(ask(counterparty).body) == ANSWER_BYTES_MAX


def test_a_redirect_is_an_answer_and_not_an_order(counterparty: Counterparty) -> None:
    """Another host is not the one that was agreed on."""
    with Elsewhere() as elsewhere:
        counterparty.script = respond(307, {}, extra=f"Location: http://127.0.0.1:{elsewhere.port}/\r\n")
        assert ask(counterparty).status == 307
        assert elsewhere.port != counterparty.port
        assert elsewhere.visits == 0


def test_a_proxy_of_the_environment_is_not_used(counterparty: Counterparty, monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of the environment can put somebody in between."""
    with Elsewhere() as elsewhere:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{elsewhere.port}")
        counterparty.script = respond(200, {})
        assert ask(counterparty).status == 200
        assert elsewhere.visits == 0


@pytest.mark.parametrize(
    "url",
    [
        "http://payments.example",
        "http://127.0.0.1.evil.example",
        "http://169.254.169.254/latest",
        "ftp://127.0.0.1",
        "https://",
        "https://user:pw@payments.example",
        "https://payments.example?x=1",
        "https://payments.example#x",
        "https://payments.example:port",
        "payments.example",
        "",
    ],
)
def test_what_is_no_endpoint_is_refused(url: str) -> None:
    """Plain HTTP never crosses a network, and credentials have no place in a URL."""
    with pytest.raises(ValueError):  # noqa: PT011 -- the URL's parser words some of them
        endpoint(url)


class Elsewhere:
    """A port on which nobody should ever knock."""

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setblocking(False)
        self.port = int(self._listener.getsockname()[1])
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    @property
    def visits(self) -> int:
        try:
            connection, _ = self._listener.accept()
        except BlockingIOError:
            return 0
        connection.close()
        return 1


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a certificate for this machine that only its holder vouches for."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "certificate.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + signed.public_bytes(serialization.Encoding.PEM)
    )
    return path


def _whole_request(connection: ssl.SSLSocket) -> bytes:
    """Read until the body is there: whoever answers and hangs up before that resets what is still on its way."""
    received = b""
    while not received.endswith(b"\r\n\r\n{}") and (more := connection.recv(65_536)):
        received += more
    return received


class TlsServer:
    """Speaks TLS, notes what arrives in the clear, and then either answers or falls silent."""

    def __init__(self, certificate: Path, reply: bytes | None) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate)
        self._reply = reply
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://localhost:{self._listener.getsockname()[1]}"
        self.received: list[bytes] = []
        self.done = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.done.set()
        self._listener.close()
        self._thread.join(timeout=10)
        assert not self._thread.is_alive()

    def _serve(self) -> None:
        try:
            plain, _ = self._listener.accept()
            with plain, self._context.wrap_socket(plain, server_side=True) as connection:
                self.received.append(_whole_request(connection))
                if self._reply is None:
                    self.done.wait(20)
                else:
                    connection.sendall(self._reply)
        except OSError:
            return


@pytest.fixture
def silent_tls(certificate: Path) -> Iterator[TlsServer]:
    """Take requests and never answer."""
    server = TlsServer(certificate, None)
    yield server
    server.close()


@pytest.fixture
def polite_tls(certificate: Path) -> Iterator[TlsServer]:
    """Answer the one request that comes."""
    server = TlsServer(certificate, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
    yield server
    server.close()


def trusting(certificate: Path) -> ssl.SSLContext:
    """Trust the test's own certificate beside nobody else's."""
    return ssl.create_default_context(cafile=str(certificate))


def test_a_host_that_nobody_vouches_for_gets_nothing(polite_tls: TlsServer) -> None:
    """The handshake comes before the first byte of the request."""
    with pytest.raises(NotSent):
        endpoint(polite_tls.url).exchange("POST", ("x",), headers={}, body=b"{}")
    assert polite_tls.received == []


def test_a_trusted_host_is_spoken_to(polite_tls: TlsServer, certificate: Path) -> None:
    """The same exchange over TLS."""
    trusted = Endpoint(base_url=polite_tls.url, exchange_seconds=5, tls=trusting(certificate))
    assert trusted.exchange("POST", ("x",), headers={}, body=b"{}").status == 200
    assert polite_tls.received[0].startswith(b"POST /x HTTP/1.1\r\n")


def test_silence_over_tls_ends_in_time_too(silent_tls: TlsServer, certificate: Path) -> None:
    """The cut works on an encrypted connection as well."""
    trusted = Endpoint(base_url=silent_tls.url, exchange_seconds=0.5, tls=trusting(certificate))
    started = time.monotonic()
    with pytest.raises(NoAnswer):
        trusted.exchange("POST", ("x",), headers={}, body=b"{}")
    assert time.monotonic() - started < 5
