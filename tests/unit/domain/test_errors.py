"""Errors say what to do next: five dispositions, and a code of its own for each."""

from collections.abc import Iterator

import pytest

from shared.domain import errors
from shared.domain.errors import Disposition, EngineError
from shared.runtime import step

FAMILIES = {
    Disposition.REJECT: errors.Reject,
    Disposition.REDECIDE: errors.Redecide,
    Disposition.RETRY: errors.Retry,
    Disposition.PARK: errors.Park,
    Disposition.CRASH: errors.Crash,
}


def below(kind: type[EngineError]) -> Iterator[type[EngineError]]:
    """Every error below one."""
    for each in kind.__subclasses__():
        yield each
        yield from below(each)


ERRORS = sorted({each for each in below(EngineError) if each.__module__ == errors.__name__}, key=lambda e: e.__name__)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_an_error_belongs_to_one_of_five_families(error: type[EngineError]) -> None:
    """The machine has one rule for each disposition, and an error's class says which."""
    assert issubclass(error, FAMILIES[error.disposition])


def test_codes_tell_errors_apart() -> None:
    """A caller that reads the code knows what happened."""
    codes = [error.code for error in ERRORS]

    assert len(set(codes)) == len(codes)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_the_machine_knows_every_error_by_its_family(error: type[EngineError]) -> None:
    """A step raises one of exactly five names, whatever was added to the engine since."""
    assert step._NAMES[error.disposition].__name__ == FAMILIES[error.disposition].__name__


def test_an_error_keeps_its_sentence() -> None:
    """The message is for a person; the code is for a machine."""
    error = errors.StaleVersion("somebody was faster")

    assert (error.message, str(error), error.code) == ("somebody was faster", "somebody was faster", "stale_version")
