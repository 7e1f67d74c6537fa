"""The action ledger: one row per operation key."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from shared.domain.action import ActionRow, Settlement, Verb
from shared.domain.identity import TaskKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The answer to a claim: whether it was won, and the row as it is now."""

    won: bool
    row: ActionRow


class ActionLedger(Protocol):
    """Claims and settlements of rows that a commit has written. All reads are strongly consistent."""

    def get(self, key: TaskKey, operation: str) -> ActionRow | None:
        """Read one row."""

    def claim(
        self, key: TaskKey, operation: str, *, expected_fence: int, verb: Verb, now: datetime, lease_ends_at: datetime
    ) -> Claim | None:
        """Take the row for one attempt if its fence is still the expected one, it is not settled and no lease is live.

        Winning raises the fence by one, counts the attempt before any work is done (B63), and for `Verb.SEND` sets
        the row in flight and keeps the instant of the first send.

        Returns:
            None if there is no such row.

        If killed here:
            The row is in flight under a lease that lapses; nobody reads that as "it did not happen".
        """

    def rows(self, key: TaskKey) -> tuple[ActionRow, ...]:
        """Read all rows of a task, in the order of their versions."""

    def renew(self, key: TaskKey, operation: str, *, fence: int, now: datetime) -> ActionRow:
        """Give an unsettled operation its tries back, because a person has looked at it.

        What was sent and when is kept: only the counts of attempts and look-ups begin again.

        Raises:
            LeaseLost: an attempt is at work on it, has claimed it since, or has settled it; nothing was changed.

        If killed here:
            The counts are new or old; renewing again is harmless.
        """

    def settle(self, key: TaskKey, operation: str, settlement: Settlement, *, fence: int, now: datetime) -> ActionRow:
        """Write what is known and since when (``settled_at``, whatever the status), and end the lease.

        A settlement as intent says that nothing was sent: it also forgets ``first_sent_at``.

        Raises:
            LeaseLost: a later attempt holds the row; this attempt's result is discarded (B20).
        """
