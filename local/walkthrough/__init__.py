"""The walk-through: a refund from request to payment on a deployed system, with what may go wrong on the way.

Each scene does something, says what it expects, and shows what it saw. The scenario tests hold the same scenes to
the same expectations.
"""

from __future__ import annotations

from collections.abc import Callable

from local.instance import Instance
from local.walkthrough.observer import Observer
from local.walkthrough.scenes import SCENES
from local.walkthrough.story import Story

__all__ = ["Observer", "Story", "run", "tell_story"]


def run(instance: Instance, say: Callable[[str], None] = print) -> int:
    """Play every scene against a deployed instance.

    Returns:
        0 if everything that was seen is what was expected, 1 otherwise.
    """
    story = tell_story(instance, say)
    say(story.summary())
    return 0 if story.holds else 1


def tell_story(instance: Instance, say: Callable[[str], None]) -> Story:
    """Play every scene, in order; a scene that cannot go on counts as one that differs, and the next one begins."""
    story = Story(say=say)
    observer = Observer(instance=instance)
    for scene in SCENES:
        story.play(scene, observer)
    return story
