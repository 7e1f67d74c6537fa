"""Stories of hundreds of steps write no log: what a step answered is in the world, where a test can see it."""

from collections.abc import Iterator

import pytest

from shared.runtime.observability import logger


@pytest.fixture(autouse=True, scope="module")
def _quiet() -> Iterator[None]:
    before = logger.log_level
    logger.setLevel("CRITICAL")
    yield
    logger.setLevel(before)
