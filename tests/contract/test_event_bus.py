"""The contract of `EventBus`, on the fake and on EventBridge as moto plays it; failures on a strict stub."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError
from moto import mock_aws

from shared.adapters.eventbridge.event_bus import EventBridgeBus, event_id
from shared.domain.errors import InvariantBroken, Throttled
from shared.domain.identity import TaskKey
from shared.domain.outbox import PublishEvent
from shared.ports.event_bus import EventBus
from tests.builders import a_task_key
from tests.contract.cloud import client, stubbed
from tests.fakes.process import Process
from tests.fakes.store import World

BUS = "holdfast-test"
EVENT = PublishEvent(
    event="task.completed", version=7, detail={"outcome": "refunded", "amount_minor": 45_000, "late": False, "n": None}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One implementation, and what subscribers of it have seen, as (task, event, version)."""

    bus: EventBus
    seen: Callable[[], list[tuple[str, str, int]]]


@pytest.fixture(params=["fake", "real"])
def service(request: pytest.FixtureRequest) -> Service:
    """Make the fake, then the real thing."""
    if request.param == "fake":
        world = World()
        return Service(
            bus=Process(world).event_bus,
            seen=lambda: [(key.key, event.event, event.version) for key, event in world.events],
        )
    made: Service = request.getfixturevalue("real_service")
    return made


@pytest.fixture(scope="module")
def real_service() -> Iterator[Service]:
    """Make a bus with one subscriber, a log group, on moto."""
    with mock_aws():
        events, logs = client("events"), client("logs")
        events.create_event_bus(Name=BUS)
        logs.create_log_group(logGroupName="/aws/events/seen")
        group = logs.describe_log_groups()["logGroups"][0]["arn"].removesuffix(":*")
        events.put_rule(Name="all", EventBusName=BUS, EventPattern='{"source":["holdfast"]}')
        events.put_targets(Rule="all", EventBusName=BUS, Targets=[{"Id": "logs", "Arn": group}])

        def seen() -> list[tuple[str, str, int]]:
            lines = logs.filter_log_events(logGroupName="/aws/events/seen")["events"]
            received = [json.loads(line["message"]) for line in lines]
            return [
                (f"{e['detail']['tenant']}#{e['detail']['task_id']}", e["detail-type"], e["detail"]["version"])
                for e in received
            ]

        yield Service(bus=EventBridgeBus(events, BUS), seen=seen)


def test_an_event_reaches_its_subscribers(service: Service) -> None:
    """By source and name, with whose task it was and at which version."""
    key = a_task_key(1)
    service.bus.publish(key, EVENT)
    assert (key.key, "task.completed", 7) in service.seen()


def test_publishing_again_is_harmless(service: Service) -> None:
    """At least once: a subscriber sees the repeat."""
    key = a_task_key(2)
    service.bus.publish(key, EVENT)
    service.bus.publish(key, EVENT)
    assert service.seen().count((key.key, "task.completed", 7)) == 2


def _detail() -> dict[str, Any]:
    return {
        "detail": dict(EVENT.detail),
        "event": "task.completed",
        "event_id": event_id(a_task_key(), EVENT),
        "schema_version": 1,
        "task_id": a_task_key().task_id,
        "tenant": "acme",
        "version": 7,
    }


def test_an_event_has_a_fixed_form() -> None:
    """Subscribers rely on the source, the names and the types; the form carries its version."""
    entry = {
        "Source": "holdfast",
        "DetailType": "task.completed",
        "Detail": json.dumps(_detail(), sort_keys=True, separators=(",", ":")),
        "EventBusName": BUS,
    }
    with stubbed("events") as (events, stub):
        stub.add_response("put_events", {"FailedEntryCount": 0, "Entries": [{"EventId": "e"}]}, {"Entries": [entry]})
        EventBridgeBus(events, BUS).publish(a_task_key(), EVENT)


def test_a_repeat_has_the_same_id_and_nothing_else_has() -> None:
    """B66: a subscriber can tell a repeat from a second event."""
    key = a_task_key()
    others: list[tuple[TaskKey, PublishEvent]] = [
        (a_task_key(2), EVENT),
        (a_task_key(tenant="globex"), EVENT),
        (key, EVENT.model_copy(update={"version": 8})),
        (key, EVENT.model_copy(update={"event": "task.failed"})),
        (key, EVENT.model_copy(update={"detail": {"outcome": "refunded"}})),
        (key, EVENT.model_copy(update={"detail": EVENT.detail | {"late": None}})),
    ]
    ids = [event_id(*other) for other in others]
    assert event_id(key, EVENT) == event_id(key, PublishEvent.model_validate_json(EVENT.model_dump_json()))
    assert len({*ids, event_id(key, EVENT)}) == len(others) + 1


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("ThrottlingException", Throttled),
        ("InternalFailure", Throttled),
        ("SomethingNew", Throttled),
        ("MalformedDetail", InvariantBroken),
        ("InvalidArgument", InvariantBroken),
        ("NotAuthorizedForDetailTypeException", InvariantBroken),
    ],
)
def test_a_success_that_holds_a_failure_is_none(code: str, error: type[Exception]) -> None:
    """The call succeeds and the entry in it does not: the row stays in the outbox."""
    failed = {"FailedEntryCount": 1, "Entries": [{"ErrorCode": code, "ErrorMessage": "words"}]}
    with stubbed("events") as (events, stub):
        stub.add_response("put_events", failed)
        with pytest.raises(error):
            EventBridgeBus(events, BUS).publish(a_task_key(), EVENT)


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        ("ThrottlingException", 400, Throttled),
        ("InternalException", 500, Throttled),
        ("AccessDeniedException", 400, InvariantBroken),
        ("ResourceNotFoundException", 400, InvariantBroken),
    ],
)
def test_a_refused_call(code: str, status: int, error: type[Exception]) -> None:
    """What may pass is delivered again; a missing bus or grant is loud."""
    with stubbed("events") as (events, stub):
        stub.add_client_error("put_events", service_error_code=code, http_status_code=status)
        with pytest.raises(error):
            EventBridgeBus(events, BUS).publish(a_task_key(), EVENT)


def test_no_answer_is_delivered_again() -> None:
    """A subscriber may see it twice, and never not at all."""

    def fail(**_: object) -> None:
        raise ReadTimeoutError(endpoint_url="the bus")

    events = client("events")
    events.meta.events.register("before-call.events", fail)
    try:
        with pytest.raises(Throttled):
            EventBridgeBus(events, BUS).publish(a_task_key(), EVENT)
    finally:
        events.meta.events.unregister("before-call.events", fail)
