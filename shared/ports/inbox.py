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


class Inbox(Protocol):
    """Reads of the inbox; rows are written by commits alone, together with the transition they caused."""

    def get(self, tenant: str, source: str, event_id: str) -> InboxRow | None:
        """Read one row, strongly consistent."""
