"""One local AWS for the whole suite, deployed by the real CDK with IAM enforced, and ended with it."""

from collections.abc import Iterator
from typing import Final

import pytest

from local import instance
from local.instance import Instance
from local.walkthrough import Observer, Story, tell_story

# Sentences that a reader of the run should see, whatever became of the tests.
SUMMARY: Final = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Begin with nothing to say."""
    config.stash[SUMMARY] = []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say it at the end."""
    for sentence in terminalreporter.config.stash[SUMMARY]:
        terminalreporter.write_line(sentence)


@pytest.fixture(scope="session")
def deployed() -> Iterator[Instance]:
    """Everything deployed and everybody known."""
    with instance.running("scenario", tell=print) as running:
        yield running


@pytest.fixture(scope="session")
def observer(deployed: Instance) -> Observer:
    """Somebody who looks at it from outside."""
    return Observer(instance=deployed)


@pytest.fixture(scope="session")
def lab(deployed: Instance) -> Story:
    """The whole walk-through, played once; each test holds one scene to its expectations."""
    return tell_story(deployed, print)
