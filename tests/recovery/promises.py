"""What people were told, held against what became true."""

from collections import Counter
from collections.abc import Iterable

from shared.domain.action import EffectClass
from shared.domain.approval import ApprovalStatus
from shared.domain.errors import TaskClosed
from shared.domain.status import Status
from tests.recovery.acts import Amends, Cancels, Decides
from tests.recovery.scene import Answer, Scene
from tests.recovery.story import Ending

# Where a task may come to rest that somebody was told would be canceled.
_CANCELED = frozenset({Status.CANCELED, Status.NEEDS_REVIEW})


def promises_kept(scene: Scene) -> Iterable[str]:
    """Whoever was told yes got what they asked for, and whoever was told no was told the truth."""
    asked_for = [task for task in scene.tasks() if task.execution.parent is None]
    if len(asked_for) != 1:
        yield f"one request was made, {len(asked_for)} tasks are stored that nobody else started"
    for answer in scene.answers:
        yield from _kept(scene, answer)


def _kept(scene: Scene, answer: Answer) -> Iterable[str]:
    task = scene.task
    if task is None:
        return
    status = task.business.status
    if isinstance(answer.refused, TaskClosed) and not task.closed:
        yield f"{answer.request.what} was told that the task has ended, it is {status}"
    if answer.refused is not None:
        return
    # Whoever cancels what is being undone already gets that ending; and an undo may have to wait for a person's word.
    ending = task.execution.ending
    stops = ending is not None and (not task.closed or status is ending.status)
    if isinstance(answer.request.act, Cancels) and status not in _CANCELED and not stops:
        yield f"{answer.request.what} was accepted, the task is {status}"
    unused = any(approval.status is ApprovalStatus.GRANTED for approval in task.security.approvals)
    if isinstance(answer.request.act, Decides) and status is Status.EXPIRED and unused:
        yield f"{answer.request.what} was accepted and never acted on, the task has expired"
    if isinstance(answer.request.act, Amends):
        asked = {name: value for name, value in answer.request.act.to.items() if name != scene.workflow.untrusted_field}
        if any(task.business.request.get(name) != value for name, value in asked.items()):
            yield f"{answer.request.what} was accepted, the task is about {task.business.request}"


def as_the_story_ends(scene: Scene, *, exactly: bool) -> Iterable[str]:
    """The story came to one of its endings; or, where others interfered, at least nothing happened more often."""
    story, reached = scene.story, ending_of(scene)
    allowed = (story.ends, *story.may_end)
    if exactly and reached not in allowed:
        yield f"it ended {reached}; expected: {' or '.join(map(str, allowed))}"
    told = {event.event for _, event in scene.world.events}
    if reached == story.ends and not story.tells <= told:
        yield f"nobody was told of {sorted(story.tells - told)}"
    undos = {tool.undo for tool in scene.tools.values() if tool.undo}
    for tool, times in reached.effects.items():
        most = max(ending.effects.get(tool, 0) for ending in allowed)
        if times > max(most, 1 if tool in undos else 0):
            yield f"{tool} acted {times} times, {most} at most are right"


def ending_of(scene: Scene) -> Ending:
    """Where the story has come to rest."""
    acted = Counter(
        effect.tool
        for downstream in scene.world.downstreams.values()
        for effect in downstream.effects
        if scene.tools[effect.tool].effect is not EffectClass.READ
    )
    status = scene.task.business.status if scene.task else Status.READY
    return Ending(status=status, effects=dict(acted))
