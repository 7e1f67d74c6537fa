"""The lab, on the deployed system: the walk-through's scenes, each held to what it expects."""

import pytest

from local.walkthrough import Story
from local.walkthrough.story import Check

CLAIMS = {
    "l1": "a refund of 450.00 waits for approval at version 1",
    "l2": "running it early is refused and no model is asked",
    "l3": "the wrong person is refused",
    "l4": "the right person approves version 1",
    "l5": "the worker is killed after the refund was sent: one refund, not closed",
    "l6": "it resumes by itself with the same key: one refund, closed; once more changes nothing",
    "l7": "amending voids the approval: the old one is stale, the new one works",
    "l8": "the planted instruction is blocked, needs review, the bank unchanged",
}


@pytest.mark.parametrize("scene", list(CLAIMS))
def test_the_scene_is_as_expected(lab: Story, scene: str) -> None:
    """L1, L2, L3, L4, L5, L6, L7, L8, R3: what the deployed system shows is what the lab promises."""
    checks = lab.checks[scene]

    assert checks, f"{CLAIMS[scene]}: nothing was checked"
    assert failed(checks) == [], CLAIMS[scene]


def test_every_scene_has_a_claim(lab: Story) -> None:
    """A scene that is added to the walk-through is tested here too."""
    assert set(lab.checks) == set(CLAIMS)


def failed(checks: list[Check]) -> list[Check]:
    """The checks that do not hold."""
    return [check for check in checks if not check.holds]
