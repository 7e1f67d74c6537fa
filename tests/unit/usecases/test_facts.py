"""Facts: what the record knows of the outside world, since when, and for which request."""

from collections import deque
from datetime import timedelta

from shared.domain.action import EffectClass
from tests.fakes.clock import NOON
from tests.fakes.downstream import Downstream, Mishap
from tests.fakes.errand import Do, a_rule, a_tool, run_errand

CHECK = a_tool("check_address", effect=EffectClass.READ)
PARCEL = a_tool("send_parcel")


def test_a_fact_says_since_when_it_is_known() -> None:
    """I6: what was read at noon is as old as that, however late the task is woken again."""
    story = run_errand(Do(tool=CHECK), Do(tool=PARCEL, rule=a_rule()))

    [read] = story.task.business.facts
    assert (read.name, read.settled_at) == ("check_address_done", NOON)
    story.later(days=2)
    story.decide()

    read, sent = story.task.business.facts
    assert (read.settled_at, sent.settled_at) == (NOON, NOON + timedelta(days=2))


def test_what_was_read_for_one_request_says_nothing_about_the_next() -> None:
    """R3: the amended request is a new question: it is looked up anew before anything is done for it."""
    story = run_errand(Do(tool=CHECK), Do(tool=PARCEL, rule=a_rule()), request={"subject": "S-1"})

    story.amend(subject="S-2")
    story.decide()

    assert story.status == "completed"
    reader = story.world.downstreams["check_address"]
    assert [effect.arguments["subject"] for effect in reader.effects] == ["S-1", "S-2"]
    assert [fact.name for fact in story.task.business.facts] == ["check_address_done", "send_parcel_done"]


def test_a_read_that_is_refused_after_a_lost_one_is_refused() -> None:
    """B27: a read that got no answer did nothing, so the next answer is the answer, also when it is a no."""
    reader = Downstream(mishaps=deque([Mishap.LOST, Mishap.REFUSED]))
    story = run_errand(Do(tool=CHECK), Do(tool=PARCEL), downstreams={"check_address": reader})

    assert story.status == "failed"
    assert [(row.tool, row.status, row.attempts) for row in story.rows] == [("check_address", "failed", 2)]
