"""DynamoDB Local as the contract suite uses it."""

import socket

import pytest

from local import dynamodb_local
from local.places import Place
from local.problems import LocalProblem


def test_it_serves_on_loopback_only_and_ends_with_its_block(place: Place) -> None:
    """Nothing that is started here listens on another interface."""
    with dynamodb_local.running(place.name) as database:
        assert database.client().list_tables()["TableNames"] == []
        # Whoever listens on every interface holds the port on all loopback addresses.
        with socket.socket() as neighbour:
            neighbour.bind(("127.0.0.2", database.port))

    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", database.port)) != 0


def test_without_its_jar_it_says_to_run_set_up(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing part is named together with the command that installs it."""
    monkeypatch.setattr(dynamodb_local, "HOME", dynamodb_local.HOME.parent / "elsewhere")

    with pytest.raises(LocalProblem, match="make setup"), dynamodb_local.running(place.name):
        pass
