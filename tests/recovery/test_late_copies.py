"""Copies of a delivery that come late (B66): after what they were about has moved on."""

import pytest

from tests.recovery.points import Trouble, points_of
from tests.recovery.story import stories_of
from tests.recovery.telling import Telling

STORIES = {story.name: (story, workflow) for story, workflow in stories_of("refund").told}


@pytest.mark.parametrize("name", ["nobody decides", "amended"])
def test_a_row_that_is_delivered_again_late_moves_no_timer_back(name: str) -> None:
    """B66, B67: the first rung's timer is set again after the second's; the escalation comes all the same."""
    told = Telling(*STORIES[name]).tell()
    late = [
        point
        for point in points_of(told.calls, told.deliveries, ())
        if point.trouble is Trouble.TWICE and point.where == "deliver"
    ]

    assert late
    for point in late:
        telling = Telling(*STORIES[name], point)
        assert not telling.tell().violations, point
        assert not telling.scene.world.timers, point
