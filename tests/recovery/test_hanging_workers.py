"""Workers that hang, are given up, and go on when others have long taken their place (B20)."""

import pytest

from tests.recovery.points import Point, Trouble, points_of
from tests.recovery.story import stories_of
from tests.recovery.telling import Telling

STORIES = {story.name: (story, workflow) for story, workflow in stories_of("refund").told}


def hangs_at(name: str, call: str) -> list[Point]:
    """Every point of a story at which a worker hangs at that call."""
    story, workflow = STORIES[name]
    told = Telling(story, workflow).tell()
    hangs = {Trouble.STALL, Trouble.STALL_ON}
    return [
        point
        for point in points_of(told.calls, told.deliveries, ())
        if point.trouble in hangs and point.where.startswith(call)
    ]


@pytest.mark.parametrize("story", ["approved", "amended", "planted instruction"])
def test_a_token_that_comes_late_takes_no_wake_up_away(story: str) -> None:
    """B20: `open_wait` hangs before it stores its token; the state that waits now is woken all the same."""
    points = hangs_at(story, "token_store.put")

    assert points
    for point in points:
        assert not Telling(*STORIES[story], point).tell().violations, point
