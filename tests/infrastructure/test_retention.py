"""Nothing that decides is ever purged, and what is purged outlives whoever may need it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from shared.usecases.receive_event import EVENT_KEPT
from shared.workflows.registry import discover
from stacks.records import RECORD_KINDS
from stacks.retention import longest_task, require_retention


def test_what_decides_is_never_purged() -> None:
    """B52: the ledger, the record, its head, its waits, leases and rights have no expiry at all."""
    purged = {kind.name for kind in RECORD_KINDS if kind.is_purged}

    assert purged == {"tokens", "inbox", "memory"}


def test_every_retention_outlives_the_longest_task() -> None:
    """O6, R7: what the workflows allow fits into what is kept."""
    require_retention(discover().values())


def test_a_workflow_that_waits_longer_than_rows_are_kept_is_refused() -> None:
    """O6: the synth stops and names what is too short."""
    endless = [replace(w, task_deadline=timedelta(days=360)) for w in discover().values()]

    with pytest.raises(ValueError, match="START_KEY_KEPT is 90 days"):
        require_retention(endless)


def test_an_accepted_event_is_known_longer_than_its_signature_counts() -> None:
    """B51: a replay is caught by the signature's age or by the inbox, always by one of the two."""
    assert timedelta(days=1) < EVENT_KEPT


def test_the_longest_task_counts_its_review() -> None:
    """A task that nobody reviews lives until the review's own deadline."""
    assert longest_task(discover().values()) > max(w.task_deadline for w in discover().values())
