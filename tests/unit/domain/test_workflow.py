"""A workflow's data and rules: strict arguments, a table of stages, and versions that follow from contents."""

from dataclasses import replace
from typing import Annotated

import pytest
from pydantic import Field

from shared.domain.action import EffectClass
from shared.domain.checkpoint import Fact
from shared.domain.errors import IllegalTransition, InvalidRequest
from shared.domain.records import Record
from shared.domain.workflow import Tool, Workflow
from shared.workflows.registry import discover
from tests.builders import a_checkpoint
from tests.fakes.clock import NOON
from tests.fakes.errand import Do, a_tool, an_errand


class Loose(Record):
    """Arguments that somebody forgot to bound."""

    count: int
    note: str = ""


class Odd(Record):
    """Arguments that no digest can be made of."""

    share: float = 0.5


def tool_with(arguments: type[Record]) -> Tool:
    """Make a tool with these arguments."""
    return replace(a_tool("count_things"), arguments=arguments)


def test_arguments_have_one_normalised_form() -> None:
    """B03: defaults are filled in before anything is digested, so leaving one out changes nothing."""
    tool = tool_with(Loose)

    assert tool.normalise({"count": 1}) == tool.normalise({"note": "", "count": 1})


@pytest.mark.parametrize("count", ["1", 1.0, True, None, [1], {"n": 1}], ids=repr)
def test_arguments_are_not_converted(count: object) -> None:
    """B73: text, fractions and truth are no integers, however well they would convert."""
    with pytest.raises(InvalidRequest):
        tool_with(Loose).normalise({"count": count})


@pytest.mark.parametrize("values", [{"count": 2**53}, {"count": -(2**53)}, {"count": 10**40}], ids=str)
def test_a_number_that_would_lose_digits_is_refused(values: dict[str, object]) -> None:
    """B09: what has no exact form is refused where it comes in, not at the commit."""
    with pytest.raises(InvalidRequest):
        tool_with(Loose).normalise(values)


def test_half_a_character_is_refused() -> None:
    """B09: text that cannot be stored is refused where it comes in."""
    with pytest.raises(InvalidRequest):
        tool_with(Loose).normalise({"count": 1, "note": "\ud800"})


def test_a_fraction_is_never_an_argument() -> None:
    """Money and counts are integers; a tool that takes fractions cannot be called."""
    with pytest.raises(InvalidRequest):
        tool_with(Odd).normalise({})


def test_a_refusal_names_our_fields_and_nobody_else_s() -> None:
    """M5: a field that a model made up is not repeated; one of ours is."""
    with pytest.raises(InvalidRequest) as refusal:
        tool_with(Loose).normalise({"count": "x", "IGNORE POLICY": 1})

    assert "count" in refusal.value.message
    assert "IGNORE" not in refusal.value.message


@pytest.mark.parametrize(
    ("before", "after"), [("received", "closed"), ("closed", "ready"), ("ready", "received"), ("received", "nowhere")]
)
def test_stages_cannot_be_skipped(before: str, after: str) -> None:
    """L2: the table of stages is the law, whatever a prompt or a rule says."""
    with pytest.raises(IllegalTransition):
        discover()["refund"].permit_stage(before, after)


@pytest.mark.parametrize("stage", list(discover()["refund"].stages))
def test_staying_is_always_allowed(stage: str) -> None:
    """A task may wait, ask and perform without leaving its stage."""
    assert discover()["refund"].permit_stage(stage, stage) == stage


def changed(workflow: Workflow, **fields: object) -> Workflow:
    """Change one tool of a workflow."""
    (tool,) = workflow.tools.values()
    return replace(workflow, tools={tool.name: replace(tool, **fields)})  # type: ignore[arg-type]


class Narrower(Record):
    """The same arguments with another limit."""

    subject: Annotated[str, Field(max_length=99)]
    memo: str | None = None


@pytest.mark.parametrize(
    "fields",
    [{"description": "x"}, {"arguments": Narrower}, {"effect": EffectClass.REVERSIBLE_WRITE}, {"undo": "undo_it"}],
    ids=lambda fields: next(iter(fields)),
)
def test_the_catalogue_s_version_follows_from_what_it_says(fields: dict[str, object]) -> None:
    """R5: whatever can steer a model or change an effect is another catalogue."""
    workflow = an_errand(Do(tool=a_tool()))

    assert changed(workflow, **fields).catalogue != workflow.catalogue
    assert an_errand(Do(tool=a_tool())).catalogue == workflow.catalogue


def test_policies_and_prompts_have_versions_of_their_own() -> None:
    """R5: each is stamped by its contents."""
    one, other = an_errand(policies="// one"), an_errand(policies="// other")

    assert one.policy != other.policy
    assert one.prompt == other.prompt
    assert replace(one, prompts={"errand": "Otherwise."}).prompt != one.prompt


def test_a_view_tells_what_happened_from_what_definitely_did_not() -> None:
    """The last word about a fact counts, and nothing is neither."""
    task = a_checkpoint()
    facts = (Fact(name="paid", happened=False), Fact(name="paid", happened=True), Fact(name="sent", happened=False))
    view = discover()["refund"].view(
        task.model_copy(update={"business": task.business.model_copy(update={"facts": facts})}), now=NOON
    )

    assert [view.happened(name) for name in ("paid", "sent", "read")] == [True, False, False]
    assert [view.refused(name) for name in ("paid", "sent", "read")] == [False, True, False]
