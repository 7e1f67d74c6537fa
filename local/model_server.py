"""Serve the gullible model as an OpenAI-compatible server: ``python -m local.model_server --port 0``.

It listens on loopback only. Its first line of output is its port; SIGTERM ends it.

* ``POST /v1/chat/completions``: one answer, never streamed;
* ``GET /_requests``: how many completions were asked for and the last of them, so that a test can prove that no model
  was asked; ``DELETE /_requests`` begins to count anew.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from local.gullible_model import reply_to

LOOPBACK: Final = "127.0.0.1"
COMPLETIONS: Final = "/v1/chat/completions"
REQUESTS: Final = "/_requests"

# Enough to look back over a whole walk-through.
KEPT_REQUESTS: Final = 50
# A window holds tens of kilobytes; a body beyond this is a mistake.
BODY_BYTES_MAX: Final = 8_000_000


class ModelServer(ThreadingHTTPServer):
    """The server and what it has been asked.

    Args:
        port: where to listen; 0 takes a free port.
    """

    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__((LOOPBACK, port), _Handler)
        self.ending = threading.Event()
        self._lock = threading.Lock()
        self._count = 0
        self._last: deque[Mapping[str, Any]] = deque(maxlen=KEPT_REQUESTS)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.server_address[1])

    def note(self, request: Mapping[str, Any]) -> None:
        """Count a request before anything is done about it."""
        with self._lock:
            self._count += 1
            self._last.append(request)

    def noted(self) -> dict[str, Any]:
        """Answer how many requests came, and the last of them in their order."""
        with self._lock:
            return {"count": self._count, "requests": list(self._last)}

    def forget(self) -> None:
        """Begin to count anew."""
        with self._lock:
            self._count = 0
            self._last.clear()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ModelServer

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        if length > BODY_BYTES_MAX:
            self.close_connection = True
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the request is too large")
            return
        raw = self.rfile.read(length)
        if self.path != COMPLETIONS:
            self._refuse(HTTPStatus.NOT_FOUND, "there is nothing at this path")
            return
        try:
            request: dict[str, Any] = json.loads(raw)
            self.server.note(request)
            reply = reply_to(request)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            self._refuse(HTTPStatus.BAD_REQUEST, f"the request is no chat completion: {error}")
            return
        self.server.ending.wait(reply.hang_seconds)
        self._answer(reply.status, reply.body)

    def do_GET(self) -> None:
        if self.path == REQUESTS:
            self._answer(HTTPStatus.OK, self.server.noted())
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "there is nothing at this path")

    def do_DELETE(self) -> None:
        if self.path == REQUESTS:
            self.server.forget()
            self._answer(HTTPStatus.OK, self.server.noted())
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "there is nothing at this path")

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        self._answer(status, {"error": {"message": message, "type": "invalid_request_error"}})

    def _answer(self, status: HTTPStatus, content: Mapping[str, Any]) -> None:
        body = json.dumps(content).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except ConnectionError:
            # Whoever asked has stopped waiting, as it should when the model hangs.
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the base class's word
        """Say nothing: the requests are kept where they can be asked for."""


def main(arguments: Sequence[str]) -> int:
    """Serve until SIGTERM or Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m local.model_server", description="A gullible model on loopback.")
    parser.add_argument("--port", type=int, default=0, help="where to listen; 0 takes a free port")
    server = ModelServer(parser.parse_args(arguments).port)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: server.ending.set())
    worker = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1})
    worker.start()
    print(server.port, flush=True)
    server.ending.wait()
    server.shutdown()
    worker.join()
    server.server_close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
