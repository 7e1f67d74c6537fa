"""The inbox, in memory."""

from dataclasses import replace
from datetime import timedelta

from shared.domain.instants import as_instant
from shared.ports.inbox import InboxRow
from tests.fakes.calls import Calls
from tests.fakes.store import World


class FakeInbox:
    def __init__(self, world: World, calls: Calls | None = None) -> None:
        self._world = world
        self._calls = calls or Calls()

    def get(self, tenant: str, source: str, event_id: str) -> InboxRow | None:
        with self._calls.around("inbox.get"), self._world as world:
            return world.inbox.get((tenant, source, event_id))

    def keep(self, row: InboxRow) -> None:
        with self._calls.around("inbox.keep"), self._world as world:
            world.inbox.setdefault((row.tenant, row.source, row.event_id), to_whole_second(row))

    def early(self, tenant: str, source: str, correlation_id: str) -> tuple[InboxRow, ...]:
        with self._calls.around("inbox.early"), self._world as world:
            of_both = f"early:{source}:{correlation_id}"
            rows = [row for (owner, of, _), row in world.inbox.items() if (owner, of) == (tenant, of_both)]
            return tuple(sorted(rows, key=lambda row: row.event_id))


def to_whole_second(row: InboxRow) -> InboxRow:
    """Keep instants as the store does: the millisecond it was received, the second (never earlier) it may be purged."""
    whole = row.purge_at.replace(microsecond=0)
    purge_at = whole if whole == row.purge_at else whole + timedelta(seconds=1)
    return replace(row, received_at=as_instant(row.received_at), purge_at=as_instant(purge_at))
