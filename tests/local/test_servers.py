"""Background servers: known by their lock, ended by their process id, never left over."""

import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from local.places import Place
from local.problems import LocalProblem
from local.processes import children_of
from local.servers import LOOPBACK, Running, Server, free_port, require_free, servers_in

# A server that also starts a child, as the emulator starts workers. The child ignores that its parent ends.
PROGRAM = """
import http.server, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
handler = http.server.SimpleHTTPRequestHandler
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), handler).serve_forever()
"""
DEAF = "import signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + PROGRAM


def answers(port: int) -> bool:
    """Whether somebody listens."""
    with socket.socket() as probe:
        return probe.connect_ex((LOOPBACK, port)) == 0


@pytest.fixture
def server(place: Place) -> Iterator[Server]:
    """A server that is ended with the test."""
    server = Server(place=place, name="probe")
    yield server
    server.stop()


def start(server: Server, program: str = PROGRAM, *, healthy: Callable[[int], bool] = answers) -> Running:
    """Start a program as a server on a free port."""
    port = free_port()
    command = [sys.executable, "-c", program, str(port)]
    environment = {"PATH": os.environ["PATH"]}
    return server.start(command, port=port, environment=environment, healthy=healthy, seconds_max=20)


def await_end(pid: int) -> None:
    """Wait until a process is gone, for ten seconds at most."""
    ends_at = time.monotonic() + 10
    while time.monotonic() < ends_at:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        if "(" in (stat := Path(f"/proc/{pid}/stat").read_text()) and stat.rpartition(")")[2].split()[0] == "Z":
            return  # it has ended; whoever inherited it has not looked yet
        time.sleep(0.02)
    pytest.fail(f"process {pid} still runs")


def test_a_started_server_is_found_by_whoever_looks_and_ends_with_its_children(server: Server) -> None:
    """Another command, which did not start it, finds the server and ends it together with what it started."""
    running = start(server)
    (child,) = [pid for pid, _ in children_of(running.pid)]
    elsewhere = Server(place=server.place, name="probe")

    assert elsewhere.running() == running
    assert elsewhere.stop()

    assert elsewhere.running() is None
    assert not answers(running.port)
    await_end(child)


def test_a_second_start_is_refused_and_leaves_the_first_alone(server: Server) -> None:
    """One server per place and name."""
    running = start(server)

    with pytest.raises(LocalProblem, match="running already"):
        start(server)

    assert server.running() == running
    assert answers(running.port)


def test_a_killed_server_counts_as_ended_and_can_be_started_again(server: Server) -> None:
    """A half-finished earlier run needs no cleaning by hand."""
    first = start(server)
    os.killpg(first.pid, signal.SIGKILL)
    await_end(first.pid)

    assert server.running() is None
    assert start(server).pid != first.pid


def test_a_server_that_will_not_end_is_made_to(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ignoring the request to end does not help it."""
    monkeypatch.setattr("local.servers.END_SECONDS_MAX", 0.5)
    running = start(server, DEAF)

    assert server.stop()

    await_end(running.pid)


def test_a_server_that_fails_is_reported_with_its_last_words(server: Server) -> None:
    """The person reads why, not only that."""
    with pytest.raises(LocalProblem) as caught:
        start(server, "import sys; sys.exit('no licence to serve')")

    assert "ended with code 1" in str(caught.value)
    assert "no licence to serve" in str(caught.value)
    assert server.running() is None


def test_a_server_that_never_gets_healthy_is_not_left_running(server: Server) -> None:
    """The bound on becoming healthy holds, and what was started is ended."""
    port = free_port()
    command = [sys.executable, "-c", PROGRAM, str(port)]

    with pytest.raises(LocalProblem, match="not ready after"):
        server.start(
            command, port=port, environment={"PATH": os.environ["PATH"]}, healthy=lambda _: False, seconds_max=0.3
        )

    assert server.running() is None
    require_free(port)


def test_a_taken_port_is_refused_by_number() -> None:
    """A busy port is named, with what to do."""
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        taken.listen()
        port = taken.getsockname()[1]

        with pytest.raises(LocalProblem, match=f"Port {port} on 127.0.0.1 cannot be used"):
            require_free(port)


def test_every_server_of_a_place_is_found_by_name(server: Server) -> None:
    """What a run left can be ended without knowing what it was; the place's other locks and logs are no servers."""
    running = start(server)
    server.place.log("deploy").touch()
    with server.place.held():
        found = servers_in(server.place)

    assert [each.running() for each in found] == [running]
