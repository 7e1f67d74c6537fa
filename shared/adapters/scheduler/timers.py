"""Timers of waits: one-time schedules of EventBridge Scheduler, named after their wait."""

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from shared.adapters.cloud_errors import CLOUD_ERRORS, code_of, may_pass
from shared.domain.errors import InvariantBroken, Throttled
from shared.domain.identity import TaskKey
from shared.domain.outbox import ArmTimer
from shared.ports.clock import Clock

if TYPE_CHECKING:
    from mypy_boto3_scheduler import EventBridgeSchedulerClient

# The service refuses an instant that has passed (B49). One this close is as good as at once.
SOONEST: Final = timedelta(seconds=5)
_EXISTS: Final = "ConflictException"
_GONE: Final = "ResourceNotFoundException"


class SchedulerTimers:
    """Schedules of one group, all with the same target.

    A schedule's name is its wait's id: 36 characters of the grammar that the service asks for, the same when it is
    made, moved and removed (B48). It removes itself when it has fired.
    """

    def __init__(
        self, client: "EventBridgeSchedulerClient", *, group: str, target_arn: str, role_arn: str, clock: Clock
    ) -> None:
        self._client = client
        self._group = group
        self._target_arn = target_arn
        self._role_arn = role_arn
        self._clock = clock

    def arm(self, key: TaskKey, timer: ArmTimer) -> None:
        """See `Timers.arm`."""
        schedule = self._schedule(key, timer)
        try:
            self._client.create_schedule(**schedule)
        except CLOUD_ERRORS as error:
            if code_of(error) != _EXISTS:
                raise _failure(error) from error
            self._move(schedule)

    def disarm(self, key: TaskKey, wait_id: str) -> None:  # noqa: ARG002 - wait ids are unique by themselves
        """See `Timers.disarm`."""
        try:
            self._client.delete_schedule(GroupName=self._group, Name=wait_id)
        except CLOUD_ERRORS as error:
            if code_of(error) != _GONE:
                raise _failure(error) from error

    def _move(self, schedule: dict[str, Any]) -> None:
        try:
            self._client.update_schedule(**schedule)
        except CLOUD_ERRORS as error:
            # It fired and removed itself between the two calls: delivered again, it is created anew.
            if code_of(error) == _GONE:
                msg = "the timer went off meanwhile"
                raise Throttled(msg) from error
            raise _failure(error) from error

    def _schedule(self, key: TaskKey, timer: ArmTimer) -> dict[str, Any]:
        fired = {
            "tenant": key.tenant,
            "correlation_id": timer.correlation_id,
            "wait_id": timer.wait_id,
            "rung": timer.rung,
        }
        return {
            "GroupName": self._group,
            "Name": timer.wait_id,
            "ScheduleExpression": f"at({self._not_past(timer.at):%Y-%m-%dT%H:%M:%S})",
            "ScheduleExpressionTimezone": "UTC",
            "FlexibleTimeWindow": {"Mode": "OFF"},
            "ActionAfterCompletion": "DELETE",
            "Target": {"Arn": self._target_arn, "RoleArn": self._role_arn, "Input": json.dumps(fired)},
        }

    def _not_past(self, at: datetime) -> datetime:
        # Cut to the second a timer would fire before its instant and find that it is early; so it is rounded up.
        whole = at.astimezone(UTC).replace(microsecond=0) + timedelta(seconds=1 if at.microsecond else 0)
        return max(whole, (self._clock.now() + SOONEST).replace(microsecond=0))


def _failure(error: Exception) -> Throttled | InvariantBroken:
    if may_pass(error):
        msg = f"the scheduler did not take the timer: {code_of(error)}"
        return Throttled(msg)
    msg = f"the scheduler refused the timer: {code_of(error)}"
    return InvariantBroken(msg)
