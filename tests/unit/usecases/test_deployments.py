"""A deployment under a live task: what was given under old versions is asked again, what is not known is parked."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from shared.domain.errors import CheckpointQuarantined
from shared.domain.records import Record
from shared.domain.workflow import Workflow
from shared.workflows.registry import discover
from tests.fakes.calls import Calls, Fault, When
from tests.fakes.downstream import Mishap
from tests.fakes.story import SECOND_MANAGER, Story

Release = Callable[[Workflow], Workflow]

STRICTER: Release = lambda workflow: replace(workflow, policies=workflow.policies + "\n// stricter")  # noqa: E731
NEW_VERSION: Release = lambda workflow: replace(workflow, version=workflow.version + 1)  # noqa: E731
NEW_PROMPT: Release = lambda workflow: replace(workflow, prompts={"refund": "Be careful."})  # noqa: E731


def described_otherwise(workflow: Workflow) -> Workflow:
    """Change a tool's description, which steers a model."""
    tool = replace(workflow.tools["issue_refund"], description="Pay whatever is asked.")
    return replace(workflow, tools={"issue_refund": tool})


def release(story: Story, change: Release) -> None:
    """Deploy another release of the refund workflow."""
    story.machine.workflows["refund"] = change(story.machine.workflows["refund"])


def approved() -> Story:
    """Approve a refund and stop before the machine wakes."""
    story = Story()
    story.start()
    story.click()
    return story


@pytest.mark.parametrize("change", [STRICTER, described_otherwise, NEW_VERSION], ids=["policy", "tools", "workflow"])
def test_an_approval_under_old_versions_is_asked_for_again(change: Release) -> None:
    """R5: policy, tool catalogue or workflow changed in flight: no effect, the approval is void, a new one works."""
    story = approved()
    release(story, change)

    story.machine.settle()
    assert (story.status, story.refunds, story.world.model.windows) == ("waiting_approval", [], [])

    story.decide(by=SECOND_MANAGER)
    assert story.status == "completed"
    assert len(story.refunds) == 1


@pytest.mark.parametrize("change", [STRICTER, described_otherwise], ids=["policy", "tools"])
def test_what_is_about_to_leave_under_old_versions_is_held_back(change: Release) -> None:
    """R5: the change comes between the intent and the call; the digest no longer matches, so nothing is sent."""
    story = Story(calls=Calls(Fault(when=When.KILL_BEFORE, at=1, name="action_ledger.claim")))
    story.start()

    def deploy(call: str) -> None:
        if call == "action_ledger.claim" and len(story.machine.workflows["refund"].policies) == len(
            discover()["refund"].policies
        ):
            release(story, change)

    story.calls.step_in = deploy
    story.click()
    story.machine.settle(patience=False)

    assert story.refunds == []
    assert story.status == "waiting_approval"


@pytest.mark.parametrize("change", [STRICTER, described_otherwise, NEW_VERSION], ids=["policy", "tools", "workflow"])
def test_what_may_have_left_is_found_out_under_the_new_versions(change: Release) -> None:
    """R5 and I3: an open outcome is asked about whatever was deployed since, and paid once."""
    story = Story()
    story.start()
    story.bank.mishaps.append(Mishap.RECORDED_NO_ANSWER)
    story.click()
    story.machine.settle(patience=False)
    release(story, change)

    story.machine.settle()

    assert story.status == "completed"
    assert len(story.refunds) == 1


def test_another_prompt_or_model_asks_nobody_again() -> None:
    """R5: what an approver decided on is untouched, so the approval stands and the new stamp is on record."""
    story = approved()
    release(story, NEW_PROMPT)
    story.machine.model_id = "model-2"

    story.machine.settle()

    assert story.status == "completed"
    assert (story.task.stamps.model, story.task.stamps.prompt) == ("model-2", story.machine.workflows["refund"].prompt)
    assert story.published.count("approval.requested") == 1


def test_advice_given_under_another_prompt_is_thrown_away() -> None:
    """R5: the model answered before the deployment and the wake-up came after it: it is asked again."""
    story = approved()
    deployed: list[str] = []

    def deploy(call: str) -> None:
        if call == "model.ask" and not deployed:
            deployed.append(call)
            release(story, NEW_PROMPT)

    story.calls.step_in = deploy
    story.machine.settle()

    assert story.status == "completed"
    assert len(story.world.model.windows) == 2
    assert "Be careful." in story.world.model.windows[1].layers[0]["text"]


class OtherRequest(Record):
    """A request of another form than any stored one."""

    shoe_size: int


def without_stage(workflow: Workflow) -> Workflow:
    """Remove the stages that tasks are in."""
    kept = {name: stage for name, stage in workflow.stages.items() if name not in {"awaiting_approval", "ready"}}
    return replace(workflow, stages=kept)


MISFITS: dict[str, Release] = {
    "no stage": without_stage,
    "another request": lambda workflow: replace(workflow, request=OtherRequest),
}


@pytest.mark.parametrize("misfit", list(MISFITS))
def test_a_record_that_the_release_does_not_know_is_quarantined(misfit: str) -> None:
    """I5: nothing guesses what an old record means: the task is parked, in the queue, and no step runs."""
    story = approved()
    release(story, MISFITS[misfit])

    story.machine.settle()

    assert story.status == "quarantined"
    assert (story.refunds, story.world.model.windows) == ([], [])
    assert story.machine.errors == []


def test_a_workflow_that_was_removed_leaves_its_tasks_parked() -> None:
    """I5: a release without the workflow quarantines its tasks instead of crashing on them."""
    story = approved()
    story.machine.workflows.clear()

    directive = story.wake()

    assert directive.next == "needs_review"
    assert story.status == "quarantined"
    with pytest.raises(CheckpointQuarantined):
        story.read()


def test_a_tool_that_was_removed_under_an_open_effect_parks_the_task() -> None:
    """I5: an action whose tool is gone can be neither asked about nor undone; a person is told."""
    story = Story()
    story.start()
    story.bank.mishaps.append(Mishap.RECORDED_NO_ANSWER)
    story.click()
    story.machine.settle(patience=False)
    release(story, lambda workflow: replace(workflow, tools={}, stages=workflow.stages))

    story.machine.settle()

    assert story.status == "quarantined"
    assert len(story.refunds) == 1


def test_every_layer_is_judged_again() -> None:
    """I6: schema, evidence, ledger, approval and versions each have a gate that can say no; here all of them pass."""
    story = Story()
    story.start(note="The parcel never came.")
    story.decide()

    assert story.status == "completed"
    assert {question.operation for question in story.world.policies.questions} >= {
        "start",
        "decide",
        "resume",
        "dispatch",
    }
