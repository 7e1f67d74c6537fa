"""The contract of `Timers`, on the fake and on moto's EventBridge Scheduler; its refusals on a strict stub."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError
from moto import mock_aws

from shared.adapters.scheduler.timers import SOONEST, SchedulerTimers
from shared.domain.errors import InvariantBroken, Throttled
from shared.domain.identity import TaskKey
from shared.domain.outbox import ArmTimer
from shared.ports.timers import Timers
from tests.builders import a_task_key
from tests.contract.cloud import client, stubbed
from tests.fakes.clock import NOON, FakeClock
from tests.fakes.process import Process
from tests.fakes.store import World

GROUP = "holdfast-test-deadlines"
TARGET = "arn:aws:lambda:us-east-1:123456789012:function:holdfast-test-deadline"
ROLE = "arn:aws:iam::123456789012:role/timers"
# What the service accepts for a name (B48).
NAME = re.compile(r"[0-9A-Za-z_.-]{1,64}\Z")


def a_timer(number: int = 1, *, rung: int = 0, at: datetime = NOON + timedelta(hours=1)) -> ArmTimer:
    """Make the timer of a wait's rung."""
    return ArmTimer(wait_id=f"wai_{number:032x}", correlation_id=f"apr_{number:032x}", rung=rung, at=at)


def timers_on(scheduler: Any, clock: FakeClock | None = None) -> SchedulerTimers:
    """Wire the adapter."""
    return SchedulerTimers(scheduler, group=GROUP, target_arn=TARGET, role_arn=ROLE, clock=clock or FakeClock())


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One implementation, and a look at what is armed: wait, rung and instant."""

    timers: Timers
    world: World | None = None
    scheduler: Any = field(default=None)

    def armed(self, wait_id: str) -> tuple[int, datetime] | None:
        """What is armed for a wait."""
        if self.world is not None:
            found = self.world.timers.get(wait_id)
            return (found[1].rung, found[1].at) if found else None
        names = [s["Name"] for s in self.scheduler.list_schedules(GroupName=GROUP)["Schedules"]]
        if wait_id not in names:
            return None
        schedule = self.scheduler.get_schedule(GroupName=GROUP, Name=wait_id)
        at = datetime.strptime(schedule["ScheduleExpression"], "at(%Y-%m-%dT%H:%M:%S)").replace(tzinfo=UTC)
        return json.loads(schedule["Target"]["Input"])["rung"], at


@pytest.fixture(params=["fake", "real"])
def service(request: pytest.FixtureRequest) -> Service:
    """Make the fake, then the real thing."""
    if request.param == "fake":
        world = World()
        return Service(timers=Process(world).timers, world=world)
    made: Service = request.getfixturevalue("real_service")
    return made


@pytest.fixture(scope="module")
def real_service() -> Iterator[Service]:
    """Make a group of schedules on moto; starting it takes longer than a test does."""
    with mock_aws():
        scheduler = client("scheduler")
        scheduler.create_schedule_group(Name=GROUP)
        yield Service(timers=timers_on(scheduler), scheduler=scheduler)


@pytest.fixture
def key() -> TaskKey:
    """Make the key of the test's task."""
    return a_task_key()


def test_a_wait_has_one_timer(service: Service, key: TaskKey) -> None:
    """B48, B67: the next rung's timer takes the place of the one before it; another wait has its own."""
    first, second, other = a_timer(1), a_timer(1, rung=1, at=NOON + timedelta(hours=2)), a_timer(2)
    for timer in (first, first, second, other):
        service.timers.arm(key, timer)
    assert service.armed(first.wait_id) == (1, NOON + timedelta(hours=2))
    assert service.armed(other.wait_id) == (0, NOON + timedelta(hours=1))


def test_a_timer_is_removed_with_its_wait(service: Service, key: TaskKey) -> None:
    """B48: exactly that one, and again is as good as once."""
    mine, other = a_timer(3), a_timer(4)
    service.timers.arm(key, mine)
    service.timers.arm(key, other)

    service.timers.disarm(key, mine.wait_id)
    service.timers.disarm(key, mine.wait_id)

    assert service.armed(mine.wait_id) is None
    assert service.armed(other.wait_id) is not None


def test_a_timer_never_armed_can_be_disarmed(service: Service, key: TaskKey) -> None:
    """The message may be delivered although the timer never was."""
    service.timers.disarm(key, a_timer(5).wait_id)


def test_a_schedule_says_which_rung_of_which_wait_it_is_for(key: TaskKey) -> None:
    """B67: bound to its wait, once, in UTC, removed by itself, calling one function as one role."""
    timer = a_timer(7, rung=2, at=NOON + timedelta(hours=1, milliseconds=1))
    fired = {"tenant": "acme", "correlation_id": timer.correlation_id, "wait_id": timer.wait_id, "rung": 2}
    expected = {
        "GroupName": GROUP,
        "Name": timer.wait_id,
        # Rounded up: a timer that fires early finds that it is early.
        "ScheduleExpression": "at(2026-10-09T13:00:01)",
        "ScheduleExpressionTimezone": "UTC",
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "ActionAfterCompletion": "DELETE",
        "Target": {"Arn": TARGET, "RoleArn": ROLE, "Input": json.dumps(fired)},
    }
    assert NAME.match(timer.wait_id)
    with stubbed("scheduler") as (scheduler, stub):
        stub.add_response("create_schedule", {"ScheduleArn": "a"}, expected)
        timers_on(scheduler).arm(key, timer)


@pytest.mark.parametrize("ago", [timedelta(), timedelta(seconds=2), timedelta(days=2)])
def test_an_instant_that_has_passed_fires_at_once(key: TaskKey, ago: timedelta) -> None:
    """B49: the service would refuse it, and a wait without timer is the one thing that must not be."""
    clock = FakeClock()
    soon = f"at({clock.now() + SOONEST:%Y-%m-%dT%H:%M:%S})"
    sent: list[dict[str, Any]] = []

    class Scheduler:
        def create_schedule(self, **schedule: Any) -> None:
            sent.append(schedule)

    timers_on(Scheduler(), clock).arm(key, a_timer(at=NOON - ago))
    assert sent[0]["ScheduleExpression"] == soon


def test_a_timer_that_fired_while_it_was_moved_is_armed_anew_later(key: TaskKey) -> None:
    """It exists when it is made and is gone when it is moved: delivered again, it is made."""
    with stubbed("scheduler") as (scheduler, stub):
        stub.add_client_error("create_schedule", service_error_code="ConflictException", http_status_code=409)
        stub.add_client_error("update_schedule", service_error_code="ResourceNotFoundException", http_status_code=404)
        with pytest.raises(Throttled):
            timers_on(scheduler).arm(key, a_timer())


@pytest.mark.parametrize("operation", ["create_schedule", "update_schedule", "delete_schedule"])
@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        ("ThrottlingException", 429, Throttled),
        ("InternalServerException", 500, Throttled),
        ("ValidationException", 400, InvariantBroken),
        ("AccessDeniedException", 403, InvariantBroken),
        ("ServiceQuotaExceededException", 402, InvariantBroken),
    ],
)
def test_what_may_pass_is_tried_again_and_the_rest_is_loud(
    key: TaskKey, operation: str, code: str, status: int, error: type[Exception]
) -> None:
    """B15: a timer that cannot be made is not passed over in silence; the sweep still ends the wait."""
    with stubbed("scheduler") as (scheduler, stub):
        if operation == "update_schedule":
            stub.add_client_error("create_schedule", service_error_code="ConflictException", http_status_code=409)
        stub.add_client_error(operation, service_error_code=code, http_status_code=status)
        timers, timer = timers_on(scheduler), a_timer()
        disarms = operation == "delete_schedule"
        with pytest.raises(error):
            timers.disarm(key, timer.wait_id) if disarms else timers.arm(key, timer)


def test_no_answer_is_tried_again(key: TaskKey) -> None:
    """Both are harmless twice."""

    class Scheduler:
        def create_schedule(self, **_: Any) -> None:
            raise ReadTimeoutError(endpoint_url="the scheduler")

        delete_schedule = create_schedule

    with pytest.raises(Throttled):
        timers_on(Scheduler()).arm(key, a_timer())
    with pytest.raises(Throttled):
        timers_on(Scheduler()).disarm(key, a_timer().wait_id)
