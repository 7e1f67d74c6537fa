"""The stages these suites look at, each synthesised once."""

import pytest

from tests.infrastructure.synthesis import Assembly, synthesise


@pytest.fixture(scope="session")
def production() -> Assembly:
    """A stage that must not be lost, for the cloud, with the sandbox beside it."""
    return synthesise("prod", sandbox="true")


@pytest.fixture(scope="session")
def disposable() -> Assembly:
    """A stage that people try things out on, for the cloud."""
    return synthesise("dev", sandbox="true")


@pytest.fixture(scope="session")
def local() -> Assembly:
    """The stage that the local AWS gets, for this machine's interpreter."""
    return synthesise("local", target="host", sandbox="true")
