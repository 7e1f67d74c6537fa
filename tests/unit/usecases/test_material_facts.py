"""Material facts: what an approval rests on is what systems of record said, as it was, and not older than it may be."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from shared.domain.action import Arguments, EffectClass, Scalar
from shared.domain.status import Status
from shared.domain.workflow import Finish, PerformAction, RequestApproval, Step, TaskView, Workflow
from shared.usecases.read_approval import read_approval
from tests.fakes.downstream import Downstream
from tests.fakes.errand import a_ladder, a_rule, a_tool, an_errand
from tests.fakes.story import MANAGER, Story

FRESH = timedelta(minutes=15)
READ = replace(
    a_tool("read_price", effect=EffectClass.READ), material=("price_minor",), fresh_for=FRESH, no_undo_because="a read"
)
BUY = replace(a_tool("buy"), rests_on=(READ.name,))
PRICE: dict[str, Scalar] = {"price_minor": 900, "warehouse": "north"}


def careful(view: TaskView) -> Step:
    """Read the price, ask, buy at the price that was approved; read again whatever has grown old."""
    purchase = BUY.normalise(view.request.model_dump())
    if view.fact(BUY.fact) is not None:
        return Finish(stage="closed", status=Status.COMPLETED, outcome="bought")
    if view.fact(READ.fact) is None or (view.approval_of(purchase) is not None and not view.is_fresh(READ)):
        return PerformAction(stage="step_1", action=READ.normalise(view.request.model_dump()))
    approval = view.approval_of(purchase)
    if approval is None:
        return RequestApproval(stage="step_1", action=purchase, rule=a_rule(), wait=a_ladder())
    return PerformAction(stage="step_1", action=purchase, approval=approval)


def hasty(view: TaskView) -> Step:
    """Buy on whatever was read, however long ago."""
    step = careful(view)
    purchase = BUY.normalise(view.request.model_dump())
    approval = view.approval_of(purchase)
    if isinstance(step, PerformAction) and step.action.tool == READ.name and approval is not None:
        return PerformAction(stage="step_1", action=purchase, approval=approval)
    return step


def shop(rules: Workflow | None = None, said: Mapping[str, Scalar] = PRICE) -> tuple[Story, dict[str, Scalar]]:
    """Start a purchase whose price stands in an outside list that a test may change."""
    made = rules or replace(an_errand(), tools={READ.name: READ, BUY.name: BUY}, next_step=careful)
    listed = dict(said)

    def told(_: Arguments) -> Arguments:
        return dict(listed)

    stages = {**made.stages, "step_1": replace(made.stages["opened"], next=frozenset({"closed"}))}
    stages["opened"] = replace(stages["opened"], next=frozenset({"step_1", "closed"}))
    made = replace(made, stages=stages)
    story = Story(made, downstreams={READ.name: Downstream(facts=told), BUY.name: Downstream()})
    story.start(workflow=made.name, request={})
    return story, listed


def bought(story: Story) -> int:
    """How often it was really bought."""
    return len(story.world.downstreams[BUY.name].effects)


def readings(story: Story) -> int:
    """How often the price was read."""
    return len(story.world.downstreams[READ.name].requests)


def test_an_approval_rests_on_what_was_read_and_shows_it() -> None:
    """B62: the page shows the material facts, the digest covers them, and what is immaterial is neither."""
    story, _ = shop()

    page = read_approval(story.person(MANAGER), story.key.task_id, story.open_approval, story.machine.api())

    assert [(field.name, field.value) for field in page.facts] == [("read_price_done.price_minor", 900)]


def test_a_fresh_reading_is_not_read_again() -> None:
    """Who decides at once has it done at once."""
    story, _ = shop()
    story.decide()

    assert (story.status, bought(story), readings(story)) == ("completed", 1, 1)


def test_an_old_reading_is_read_again_and_what_is_the_same_still_holds() -> None:
    """A reading that has grown old while people thought needs fresh evidence, and no new approval if it is the same."""
    story, _ = shop()
    story.world.clock.advance(FRESH + timedelta(minutes=1))
    story.decide()

    assert (story.status, bought(story), readings(story)) == ("completed", 1, 2)


def test_a_material_fact_that_changed_voids_the_approval() -> None:
    """B03: approved at one price is not approved at another: people are asked again, about what is true now."""
    story, listed = shop()
    story.world.clock.advance(FRESH + timedelta(minutes=1))
    listed["price_minor"] = 1_900
    story.decide()
    assert (story.status, bought(story)) == ("waiting_approval", 0)
    first, second = story.task.security.approvals
    assert (first.status, second.status) == ("void", "open")

    story.decide()

    assert (story.status, bought(story)) == ("completed", 1)


def test_an_immaterial_fact_may_change() -> None:
    """Nobody is asked twice because the goods lie elsewhere."""
    story, listed = shop()
    story.world.clock.advance(FRESH + timedelta(minutes=1))
    listed["warehouse"] = "south"
    story.decide()

    assert (story.status, bought(story)) == ("completed", 1)


def test_rules_that_forget_to_read_again_get_nothing_done_on_old_facts() -> None:
    """The engine judges it right before dispatch, whatever the workflow's rules think; what it asks for is not sent."""
    story, _ = shop(replace(an_errand(), tools={READ.name: READ, BUY.name: BUY}, next_step=hasty))
    story.world.clock.advance(FRESH + timedelta(minutes=1))
    story.decide()

    assert bought(story) == 0
