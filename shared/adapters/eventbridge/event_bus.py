"""The bus that carries business events."""

from typing import TYPE_CHECKING, Final

from shared.adapters.cloud_errors import CLOUD_ERRORS, code_of, may_pass
from shared.domain.canonical import canonical, short_digest
from shared.domain.errors import InvariantBroken, Throttled
from shared.domain.identity import TaskKey
from shared.domain.outbox import PublishEvent

if TYPE_CHECKING:
    from mypy_boto3_events import EventBridgeClient

SOURCE: Final = "holdfast"
# The entry as it is can never be published. Everything else in an answer's failures may pass.
_OUR_BUG: Final = frozenset(
    {"InvalidArgument", "InvalidEventPatternException", "MalformedDetail", "NotAuthorizedForDetailTypeException"}
)


class EventBridgeBus:
    """Publishes one event at a time."""

    def __init__(self, client: "EventBridgeClient", bus: str) -> None:
        self._client = client
        self._bus = bus

    def publish(self, key: TaskKey, event: PublishEvent) -> None:
        """See `EventBus.publish`.

        Raises:
            InvariantBroken: the event can never be published.
        """
        detail = canonical(
            {
                "schema_version": event.schema_version,
                "event_id": event_id(key, event),
                "event": event.event,
                "tenant": key.tenant,
                "task_id": key.task_id,
                "version": event.version,
                "detail": dict(event.detail),
            }
        )
        entry = {"Source": SOURCE, "DetailType": event.event, "Detail": detail.decode(), "EventBusName": self._bus}
        try:
            reply = self._client.put_events(Entries=[entry])  # type: ignore[list-item]
        except CLOUD_ERRORS as error:
            raise _failure(code_of(error), passes=may_pass(error)) from error
        if reply["FailedEntryCount"]:
            code = reply["Entries"][0].get("ErrorCode", "an error without code")
            raise _failure(code, passes=code not in _OUR_BUG)


def event_id(key: TaskKey, event: PublishEvent) -> str:
    """Return the id of an event: the same on every delivery, so that a subscriber can tell a repeat."""
    return short_digest("event", [key.key, event.version, event.event, dict(event.detail)])


def _failure(code: str, *, passes: bool) -> Throttled | InvariantBroken:
    if passes:
        msg = f"the bus did not take the event: {code}"
        return Throttled(msg)
    msg = f"the bus refused the event: {code}"
    return InvariantBroken(msg)
