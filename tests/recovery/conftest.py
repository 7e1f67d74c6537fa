"""Quiet: thousands of tellings would log millions of lines."""

import pytest

from shared.runtime.observability import logger


@pytest.fixture(autouse=True, scope="session")
def _quiet() -> None:
    logger.setLevel("CRITICAL")
