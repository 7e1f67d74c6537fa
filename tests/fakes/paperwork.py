"""A workflow that waits for papers from outside: the partner, or the post, says once whether they are signed."""

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from shared.domain.records import Record
from shared.domain.status import Status
from shared.domain.wait import OnDeadline, Rung, WaitRule
from shared.domain.workflow import AwaitEvent, Compensate, Finish, Stage, Step, TaskView, Workflow

SOURCES = ("partner", "post")
WAITS_FOR = timedelta(days=5)


class PaperworkRequest(Record):
    """Whose papers."""

    subject: Annotated[str, Field(max_length=40)] = "S-1"


class PapersAnswer(Record):
    """What the partner says. Pages and note may be left out."""

    signed: bool
    pages: Annotated[int, Field(ge=1)] = 1
    note: Annotated[str, Field(max_length=200)] | None = None


def correlation_of(subject: str = "S-1") -> str:
    """What the partner knows the papers by."""
    return f"papers-{subject}"


def paperwork() -> Workflow:
    """Make the workflow: a reminder after a day, an end after five."""
    return Workflow(
        name="paperwork",
        version=1,
        title="Paperwork",
        request=PaperworkRequest,
        stages={
            "opened": Stage(next=frozenset({"waiting", "closed"})),
            "waiting": Stage(next=frozenset({"closed"})),
            "closed": Stage(next=frozenset()),
        },
        first_stage="opened",
        tools={},
        prompts={},
        policies="// everybody may",
        task_deadline=timedelta(days=30),
        next_step=_next_step,
        judge=lambda view, _: _next_step(view),
        answers={"papers": PapersAnswer},
    )


def _next_step(view: TaskView) -> Step:
    papers = view.fact("papers")
    if papers is None:
        rule = WaitRule(
            ladder=(
                Rung(after_seconds=86_400, do=OnDeadline.REMIND, to="clerk"),
                Rung(after_seconds=2 * 86_400, do=OnDeadline.ESCALATE, to="clerk_lead"),
                Rung(after_seconds=int(WAITS_FOR.total_seconds()), do=OnDeadline.EXPIRE, to="operator"),
            )
        )
        subject = str(getattr(view.request, "subject"))  # noqa: B009 - the view does not know the request's own type
        return AwaitEvent(
            stage="waiting", name="papers", correlation_id=correlation_of(subject), sources=SOURCES, wait=rule
        )
    if papers.values["signed"] is True:
        return Finish(stage="closed", status=Status.COMPLETED, outcome="the papers are signed")
    return Compensate(stage="closed", status=Status.FAILED, outcome="the papers were not signed")
