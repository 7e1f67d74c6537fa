"""What every suite has: the same made-up examples in every run, and an option."""

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "deterministic",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("deterministic")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let suites that run over every workflow run over one: ``make crash WORKFLOW=refund``."""
    parser.addoption("--workflow", metavar="NAME", help="run suites over workflows with this one alone")
