"""A whole local AWS: healed before it starts, usable by the people in it, gone when it ends."""

import base64
import contextlib
import json
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from local import emulator, instance
from local.instance import Instance
from local.people import PEOPLE
from local.places import Place
from local.problems import LocalProblem
from local.servers import LOOPBACK

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class Interrupted(Exception):
    """Stands for whatever ends a block early."""


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Instance, list[str], int]]:
    """One deployment for the module, begun on top of a half-finished run, ended by an error."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("local.places.STATE", tmp_path_factory.mktemp("state"))
        left_over = emulator.start(Place(name="whole"), port=None, model_url=None)
        told: list[str] = []
        with contextlib.suppress(Interrupted), instance.running("whole", tell=told.append) as running:
            yield running, told, left_over.port
            raise Interrupted
        assert _is_gone(running)


def test_a_half_finished_earlier_run_is_ended_and_said_so(deployed: tuple[Instance, list[str], int]) -> None:
    """Whoever was killed in the middle just starts again."""
    running, told, left_over = deployed

    assert "an earlier run had not been ended; it is now" in told
    assert running.aws.port != left_over
    assert _is_closed(left_over)


@pytest.mark.parametrize("name", PEOPLE)
def test_everybody_can_log_in_and_is_known_to_the_authority(
    deployed: tuple[Instance, list[str], int], name: str
) -> None:
    """The Authority finds the person by issuer and subject of the very token, in the right tenant and roles."""
    running, _, _ = deployed
    claims = json.loads(base64.urlsafe_b64decode(running.token(name).split(".")[1] + "=="))
    tables: DynamoDBClient = running.aws.client("dynamodb")
    record = f"principal#{len(claims['iss'])}:{claims['iss']}:{claims['sub']}"

    item = tables.get_item(TableName="holdfast-local-authority", Key={"record": {"S": record}})["Item"]

    assert item["tenant"]["S"] == PEOPLE[name].tenant
    assert {role["S"] for role in item["roles"]["L"]} == PEOPLE[name].roles


def test_passwords_are_generated_and_readable_by_their_owner_only(deployed: tuple[Instance, list[str], int]) -> None:
    """They stand in the state folder and nowhere else."""
    running, _, _ = deployed
    passwords = json.loads(running.place.users.read_text())

    assert len(set(passwords.values())) == len(PEOPLE)
    assert running.place.users.stat().st_mode & 0o077 == 0


def test_the_sandbox_answers_its_own_key_alone(deployed: tuple[Instance, list[str], int]) -> None:
    """The provider's address and key come out of the deployment as they are."""
    running, _, _ = deployed
    provider = running.payments()

    assert provider.get("/refunds").status == 200
    assert provider.get("/refunds", authorization="Bearer another").status == 401


def test_a_second_block_of_the_same_name_is_refused(deployed: tuple[Instance, list[str], int]) -> None:
    """A running one is never taken for a leftover."""
    running, _, _ = deployed

    with pytest.raises(LocalProblem, match="Another command is at work"), instance.running("whole"):
        pass

    assert instance.attach(running.place) == running


def test_a_busy_port_is_refused_before_anything_is_started(place: Place) -> None:
    """Nothing is left behind by a start that could not be."""
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        taken.listen()

        with (
            pytest.raises(LocalProblem, match="cannot be used"),
            instance.running(place.name, port=taken.getsockname()[1]),
        ):
            pass

    assert emulator.emulator(place).running() is None
    assert not place.log("synth").exists()


def _is_gone(running: Instance) -> bool:
    ended = emulator.emulator(running.place).running() is None and not running.place.users.exists()
    return ended and _is_closed(running.aws.port) and instance.attach(running.place) is None


def _is_closed(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((LOOPBACK, port)) != 0
