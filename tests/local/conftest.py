"""A state folder below the test's own temporary folder instead of the checkout's."""

from pathlib import Path

import pytest

from local import places
from local.places import Place


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A place that nobody else uses."""
    monkeypatch.setattr(places, "STATE", tmp_path / "state")
    return Place(name="test")
