"""Options that every suite understands."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let suites that run over every workflow run over one: ``make crash WORKFLOW=refund``."""
    parser.addoption("--workflow", metavar="NAME", help="run suites over workflows with this one alone")
