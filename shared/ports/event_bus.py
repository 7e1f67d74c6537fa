"""The bus that carries business events to whoever subscribed."""

from typing import Protocol

from shared.domain.identity import TaskKey
from shared.domain.outbox import PublishEvent


class EventBus(Protocol):
    """Publishing."""

    def publish(self, key: TaskKey, event: PublishEvent) -> None:
        """Publish, at least once; the event's id is the same on every repeat.

        Raises:
            Throttled: try again later.
        """
