"""Any checkpoint is read back as it was, and its head says what it says."""

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from shared.domain.action import Action, ActionSpec, ActionStatus, Arguments, EffectClass
from shared.domain.approval import Approval, ApprovalRule, ApprovalStatus, Basis, Decision, DecisionWord
from shared.domain.canonical import INTEGER_MAX
from shared.domain.checkpoint import Checkpoint, Fact, decode_checkpoint, encode_checkpoint, head_columns
from shared.domain.status import Status
from tests.builders import CLERK, MANAGER, a_checkpoint, a_wait
from tests.fakes.clock import NOON

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NAMES = st.from_regex(r"[a-z][a-z0-9_]{1,10}", fullmatch=True)
SCALARS = st.none() | st.booleans() | st.integers(-INTEGER_MAX, INTEGER_MAX) | TEXT
ARGUMENTS: st.SearchStrategy[Arguments] = st.dictionaries(TEXT, SCALARS, max_size=4)
MOMENTS = st.integers(0, 10**9).map(lambda millis: NOON + timedelta(milliseconds=millis))
SPECS = st.builds(ActionSpec, tool=NAMES, arguments=ARGUMENTS)
FACTS = st.builds(
    Fact,
    name=NAMES,
    happened=st.booleans(),
    ordinal=st.none() | st.integers(1, 99),
    settled_at=st.none() | MOMENTS,
    reference=st.none() | TEXT,
    values=ARGUMENTS,
)
ACTIONS = st.builds(
    Action,
    operation=TEXT,
    ordinal=st.integers(1, 99),
    request_version=st.integers(1, 99),
    spec=SPECS,
    effect=st.sampled_from(EffectClass),
    status=st.sampled_from(ActionStatus),
)
DECISIONS = st.builds(
    Decision,
    principal=st.sampled_from([CLERK, MANAGER]),
    word=st.sampled_from(DecisionWord),
    decided_at=MOMENTS,
    reason=st.none() | TEXT,
)


def _approval(spec: ActionSpec, status: ApprovalStatus, decisions: list[Decision], at: datetime) -> Approval:
    return Approval(
        approval_id="apr_1",
        spec=spec,
        basis=Basis(request_version=1, evidence="e", policy="p", catalogue="c"),
        digest="d" * 64,
        rule=ApprovalRule(role="manager", valid_for_seconds=60, because="money"),
        requested_at=at,
        expires_at=at + timedelta(days=1),
        status=status,
        decisions=tuple(decisions),
    )


APPROVALS = st.builds(_approval, SPECS, st.sampled_from(ApprovalStatus), st.lists(DECISIONS, max_size=2), MOMENTS)


@st.composite
def checkpoints(draw: st.DrawFn) -> Checkpoint:
    """Make any checkpoint."""
    task = a_checkpoint(version=draw(st.integers(1, 10**6)), status=draw(st.sampled_from(Status)), now=draw(MOMENTS))
    waits = (a_wait().pending(),) if draw(st.booleans()) else ()
    business = {"request": draw(ARGUMENTS), "facts": tuple(draw(st.lists(FACTS, max_size=3)))}
    execution = {"actions": tuple(draw(st.lists(ACTIONS, max_size=3))), "waits": waits, "run": draw(st.integers(1, 9))}
    security = {"approvals": tuple(draw(st.lists(APPROVALS, max_size=2)))}
    return task.model_copy(
        update={
            "business": task.business.model_copy(update=business),
            "execution": task.execution.model_copy(update=execution),
            "security": task.security.model_copy(update=security),
        }
    )


@given(checkpoints())
def test_a_checkpoint_is_read_back_as_it_was(task: Checkpoint) -> None:
    """B09: nothing is lost, tidied away or converted on the way through storage."""
    assert decode_checkpoint(encode_checkpoint(task)) == task


@given(checkpoints())
def test_storing_twice_stores_the_same(task: Checkpoint) -> None:
    """B09: what a fresh process reads and writes again has the same bytes, so the same seal."""
    body = encode_checkpoint(task)

    assert encode_checkpoint(decode_checkpoint(body)) == body


@given(checkpoints())
def test_digests_survive_storage(task: Checkpoint) -> None:
    """B03: an action's digest is the same before and after storage, whatever its arguments are."""
    stored = decode_checkpoint(encode_checkpoint(task))

    assert [action.digest for action in stored.execution.actions] == [a.digest for a in task.execution.actions]


@given(checkpoints())
def test_the_head_follows_from_the_record(task: Checkpoint) -> None:
    """B19: columns are a function of the sealed body alone."""
    assert head_columns(decode_checkpoint(encode_checkpoint(task))) == head_columns(task)
