"""The inbox: events and requests that were accepted, by source and id."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxRow:
    """One accepted event. `digest` tells a repeat from a reuse of its id; `task_id` answers the repeat.

    `purge_at` outlives every window in which the event could be accepted again; its passing decides nothing.
    """

    tenant: str
    source: str
    event_id: str
    digest: str
    task_id: str
    received_at: datetime
    purge_at: datetime
    # The whole event, canonical, where it has to be kept until its wait opens.
    event: str | None = None


class Inbox(Protocol):
    """The inbox. Rows are written by commits, with the transition they caused; only early events come alone."""

    def get(self, tenant: str, source: str, event_id: str) -> InboxRow | None:
        """Read one row, strongly consistent."""

    def keep(self, row: InboxRow) -> None:
        """Keep an event that came before its wait; keeping it again changes nothing."""

    def early(self, tenant: str, source: str, correlation_id: str) -> tuple[InboxRow, ...]:
        """List what a source's events for a correlation id said before its wait opened, strongly consistent.

        They are rows of the source ``early:<source>:<correlation id>``: no source can crowd out another's.
        """
