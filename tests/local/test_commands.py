"""Commands that run to their end, and the exclusion of those that would get in each other's way."""

import os
import sys
import time
from pathlib import Path

import pytest

from local import model
from local.commands import Command
from local.deploy import output
from local.environment import isolated, plain_environment
from local.model import MODEL_URL_VARIABLE
from local.places import Place, installed
from local.problems import LocalProblem


def begin(place: Place, program: str) -> Command:
    """Start a Python program as a command."""
    words = [sys.executable, "-c", program]
    return Command.start("`probe`", words, folder=place.folder, environment={}, log=place.log("probe"))


def test_a_command_that_fails_is_reported_with_its_last_words(place: Place) -> None:
    """What went wrong stands on the terminal, not only in a log."""
    command = begin(place, "import sys; print('no such stack'); sys.exit(3)")

    with pytest.raises(LocalProblem) as caught:
        command.wait(seconds_max=20)

    assert "`probe` failed with code 3" in str(caught.value)
    assert "no such stack" in str(caught.value)


def test_a_command_out_of_time_is_ended_together_with_what_it_runs(place: Place) -> None:
    """Nothing of it goes on in the background."""
    note = place.folder / "child"
    program = f"""
import pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
pathlib.Path({str(note)!r}).write_text(str(child.pid))
time.sleep(60)
"""
    command = begin(place, program)
    ends_at = time.monotonic() + 20
    while not (note.exists() and note.read_text()):
        assert time.monotonic() < ends_at
        time.sleep(0.02)

    with pytest.raises(LocalProblem, match="did not end"):
        command.wait(seconds_max=0.1)

    assert command.process.poll() is not None
    assert _ended(int(note.read_text()))


def test_two_commands_on_one_place_exclude_each_other(place: Place) -> None:
    """The second is told, and does not take the first one's servers for leftovers."""
    with place.held(), pytest.raises(LocalProblem, match="Another command is at work"), Place(name="test").held():
        pass

    with place.held():
        pass


def test_a_missing_program_is_named_with_the_command_that_installs_it() -> None:
    """Whoever forgot the set-up is told so."""
    with pytest.raises(LocalProblem, match="make setup"):
        installed(Path(__file__).parent / "no-such-program")


def test_a_missing_output_is_named_with_those_that_exist() -> None:
    """A renamed output is found by reading the message."""
    outputs = {"Holdfast-local-Engine": {"ApiUrl": "http://here"}}

    assert output(outputs, "Engine", "ApiUrl") == "http://here"
    with pytest.raises(LocalProblem, match=r"Holdfast-local-Engine\.ApiUrl"):
        output(outputs, "Engine", "Address")


def test_no_program_sees_the_accounts_of_the_person(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake here cannot reach a real account: neither credentials nor profiles are passed on."""
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ROLE_ARN"):
        monkeypatch.setenv(name, "real")

    environment = {**plain_environment(), **isolated()}

    assert "real" not in environment.values()
    assert environment["AWS_CONFIG_FILE"] == environment["AWS_SHARED_CREDENTIALS_FILE"] == os.devnull


def _ended(pid: int) -> bool:
    """Whether a process is gone, or is only waiting for its parent to look."""
    ends_at = time.monotonic() + 10
    while time.monotonic() < ends_at:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_the_walk_through_says_at_once_that_it_needs_its_own_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits a minute for a deployment whose story another model would not tell."""
    monkeypatch.setenv(MODEL_URL_VARIABLE, "http://127.0.0.1:9")

    with pytest.raises(LocalProblem, match="Unset it"):
        model.require_own()

    monkeypatch.setenv(MODEL_URL_VARIABLE, " ")
    model.require_own()
