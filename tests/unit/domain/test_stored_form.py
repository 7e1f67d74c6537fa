"""The stored form of a checkpoint: short, and read back as exactly what was written."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.domain.action import Action, ActionSpec, ActionStatus, EffectClass, Scalar
from shared.domain.approval import Approval, ApprovalRule, ApprovalStatus, Basis, Decision, DecisionWord
from shared.domain.canonical import INTEGER_MAX, canonical
from shared.domain.checkpoint import (
    Attempts,
    CancelRequest,
    CancelScope,
    Checkpoint,
    Execution,
    Fact,
    RecentEvent,
    References,
    Security,
    Stamps,
    decode_checkpoint,
    encode_checkpoint,
)
from shared.domain.evidence import EvidenceRef, evidence_digest
from shared.domain.identity import PrincipalRef, operation_key
from shared.domain.instants import as_instant
from shared.domain.stored_form import restore
from shared.domain.wait import OnDeadline, PendingWait, WaitKind
from tests.builders import CLERK, MANAGER, a_checkpoint, a_task_key
from tests.fakes.clock import NOON

SAMPLES: Final = sorted((Path(__file__).parents[2] / "fixtures" / "checkpoints").glob("v*/*.json"))

# Few values of each kind, so that parts of a record often repeat each other, or nearly do.
principals = st.builds(
    PrincipalRef, issuer=st.sampled_from([CLERK.issuer, "https://else.test"]), subject=st.sampled_from(["a", "b"])
)
scalars: st.SearchStrategy[Scalar] = st.one_of(
    st.none(), st.booleans(), st.integers(-1, 2), st.sampled_from(["", "1", "€\u2028"]), st.just(INTEGER_MAX)
)
arguments = st.dictionaries(st.sampled_from(["a", "b"]), scalars, max_size=2)
small = st.integers(1, 3)
instants = st.integers(0, 3).map(lambda hours: NOON + timedelta(hours=hours))
refs = st.builds(
    EvidenceRef,
    evidence_id=st.sampled_from(["e1", "e2"]),
    source_kind=st.just("note"),
    object_version=st.just("v"),
    sha256=st.just("0" * 64),
)
digests = st.sampled_from(["p" * 32, "c" * 32, evidence_digest(())])
ids = st.sampled_from(["apr_1", "apr_2"])
specs = st.builds(ActionSpec, tool=st.sampled_from(["pay", "tell"]), arguments=arguments)
bases = st.builds(Basis, request_version=small, evidence=digests, policy=digests, catalogue=digests)
decisions = st.builds(
    Decision,
    principal=principals,
    word=st.sampled_from(DecisionWord),
    decided_at=instants,
    reason=st.sampled_from([None, "", "seen"]),
)
rules = st.builds(
    ApprovalRule,
    role=st.just("manager"),
    quorum=st.integers(1, 2),
    requester_excluded=st.booleans(),
    authenticated_within_seconds=st.sampled_from([None, 300]),
    valid_for_seconds=st.just(3_600),
    because=st.just("it is much"),
)
approvals = st.builds(
    Approval,
    approval_id=ids,
    spec=specs,
    basis=bases,
    digest=st.just("d" * 64),
    rule=rules,
    requested_at=instants,
    expires_at=instants,
    status=st.sampled_from(ApprovalStatus),
    decisions=st.lists(decisions, max_size=2).map(tuple),
    used_by=st.one_of(st.none(), small),
)
operations = st.builds(
    lambda version, ordinal, tool: operation_key(a_task_key(), request_version=version, ordinal=ordinal, tool=tool),
    small,
    small,
    st.sampled_from(["pay", "tell"]),
)
actions = st.builds(
    Action,
    operation=st.one_of(operations, st.just("of another making")),
    ordinal=small,
    request_version=small,
    spec=specs,
    effect=st.sampled_from(EffectClass),
    approval_id=st.one_of(st.none(), ids),
    undoes=st.sampled_from([None, "acme:other"]),
    status=st.sampled_from(ActionStatus),
)
waits = st.builds(
    PendingWait,
    wait_id=ids,
    kind=st.sampled_from(WaitKind),
    name=st.just("answer"),
    correlation_id=ids,
    request_version=small,
    acts_at=instants,
    deadline_at=instants,
    ends_by=st.sampled_from(OnDeadline),
)
facts = st.builds(
    Fact,
    name=st.just("paid"),
    happened=st.booleans(),
    ordinal=st.one_of(st.none(), small),
    settled_at=st.one_of(st.none(), instants),
    reference=st.sampled_from([None, "", "r"]),
    values=arguments,
)
events = st.builds(RecentEvent, at=instants, what=st.sampled_from(["", "a line"]))
cancels = st.builds(CancelRequest, scope=st.sampled_from(CancelScope), principal=principals, requested_at=instants)
executions = st.builds(
    Execution,
    run=small,
    ordinal=st.integers(0, 3),
    fence=st.integers(0, 3),
    waits=st.lists(waits, max_size=2).map(tuple),
    actions=st.lists(actions, max_size=3).map(tuple),
    recent=st.lists(events, max_size=2).map(tuple),
    cancel=st.one_of(st.none(), cancels),
)


@st.composite
def checkpoints(draw: st.DrawFn) -> Checkpoint:
    """Any checkpoint, also one that no rule of ours would make."""
    plain = a_checkpoint()
    business = {
        "owner": draw(principals),
        "request": draw(arguments),
        "request_version": draw(small),
        "facts": tuple(draw(st.lists(facts, max_size=2))),
        "outcome": draw(st.sampled_from([None, "", "done"])),
    }
    security = Security(
        tenant="acme",
        on_behalf_of=draw(st.one_of(st.none(), principals)),
        approvals=tuple(draw(st.lists(approvals, max_size=3))),
    )
    return plain.model_copy(
        update={
            "business": plain.business.model_copy(update=business),
            "execution": draw(executions),
            "references": References(evidence=tuple(draw(st.lists(refs, max_size=2)))),
            "security": security,
            "stamps": Stamps(workflow=1, policy=draw(digests), catalogue=draw(digests), prompt="i" * 32, model="m"),
            "attempts": Attempts(refusals=draw(st.integers(0, 1)), turns=draw(st.integers(0, 1))),
            "created_at": draw(instants),
            "updated_at": draw(instants),
            "status_since": draw(instants),
        }
    )


@settings(max_examples=400, deadline=None)
@given(task=checkpoints())
def test_any_record_is_read_back_as_it_was(task: Checkpoint) -> None:
    """B09, R1: whatever repeats, whatever nearly does, nothing is lost and nothing is made up, to the type."""
    stored = decode_checkpoint(encode_checkpoint(task))

    assert stored == task
    assert canonical(stored.model_dump(mode="json")) == canonical(task.model_dump(mode="json"))


@settings(max_examples=100, deadline=None)
@given(task=checkpoints())
def test_a_record_has_one_stored_form(task: Checkpoint) -> None:
    """B09: read and written again it is the same bytes, which is what a seal covers."""
    body = encode_checkpoint(task)

    assert encode_checkpoint(decode_checkpoint(body)) == body


def test_true_does_not_stand_in_for_one() -> None:
    """B09: the request has the number 1 and the action the word true; the action keeps its own."""
    plain = a_checkpoint()
    action = Action(
        operation="x",
        ordinal=1,
        request_version=1,
        spec=ActionSpec(tool="pay", arguments={"a": True}),
        effect=EffectClass.KEYED_WRITE,
    )
    task = plain.model_copy(
        update={
            "business": plain.business.model_copy(update={"request": {"a": 1}}),
            "execution": plain.execution.model_copy(update={"actions": (action,)}),
        }
    )

    stored = decode_checkpoint(encode_checkpoint(task))

    assert stored.execution.actions[0].spec.arguments == {"a": True}
    assert stored.execution.actions[0].digest == action.digest


def test_a_stored_body_says_nothing_twice() -> None:
    """What a task's usual version leaves out, name by name: the form that operators read in the table."""
    body = json.loads(usual())

    (approval,) = body["security"]["approvals"]
    (action,) = body["execution"]["actions"]
    assert approval["basis"] == {}
    assert approval["spec"] == {"tool": "issue_refund"}
    assert approval["decisions"][0]["principal"] == {"subject": "manager-7"}
    assert approval["digest"] == "d" * 64
    assert action == {"approval_id": "apr_1", "effect": "keyed_write", "ordinal": 1}
    assert not {"created_at", "status_since", "attempts", "references"} & body.keys()
    assert body["schema_version"] == 1


def test_a_stored_body_is_read_by_the_rules_of_its_schema() -> None:
    """I5: these bytes were stored under schema version 1; a release that reads them otherwise has broken it."""
    task = decode_checkpoint(usual())

    (approval,), (action,) = task.security.approvals, task.execution.actions
    assert action.operation == "acme:tsk_00000000000000000000000000000001:v1:1:issue_refund"
    assert action.spec == approval.spec
    assert action.spec.arguments == {"amount_minor": 45_000, "currency": "EUR", "order_reference": "A-1001"}
    assert action.status is ActionStatus.INTENT
    assert approval.basis == Basis(
        request_version=1, evidence="21bec740fe0c689917ed715bc74f178b", policy="p" * 32, catalogue="c" * 32
    )
    assert approval.decisions[0].principal == MANAGER
    assert (approval.rule.quorum, approval.rule.requester_excluded) == (1, True)
    assert approval.expires_at == as_instant(datetime(2026, 10, 9, 13, tzinfo=UTC))
    assert task.created_at == task.status_since == task.updated_at == NOON
    assert task.attempts == Attempts()


def usual() -> str:
    """A body as it was stored, all of it written out here."""
    body: dict[str, Any] = {
        "business": {
            "because": "issue_refund is permitted and about to be performed",
            "deadline_at": "2026-11-08T12:00:00.000Z",
            "owner": {"issuer": "https://issuer.test/pool", "subject": "clerk-1"},
            "request": {"amount_minor": 45_000, "currency": "EUR", "order_reference": "A-1001"},
            "request_version": 1,
            "stage": "ready",
            "status": "ready",
            "workflow": "refund",
        },
        "execution": {
            "actions": [{"approval_id": "apr_1", "effect": "keyed_write", "ordinal": 1}],
            "ordinal": 1,
            "recent": [{"at": "2026-10-09T12:00:00.000Z", "what": "the request was received"}],
            "run": 1,
        },
        "previous_seal": "c2VhbA==",
        "schema_version": 1,
        "security": {
            "approvals": [
                {
                    "approval_id": "apr_1",
                    "basis": {},
                    "decisions": [
                        {
                            "decided_at": "2026-10-09T12:00:00.000Z",
                            "principal": {"subject": "manager-7"},
                            "word": "approve",
                        }
                    ],
                    "digest": "d" * 64,
                    "requested_at": "2026-10-09T12:00:00.000Z",
                    "rule": {"because": "it is much", "role": "manager", "valid_for_seconds": 3_600},
                    "spec": {"tool": "issue_refund"},
                    "status": "consumed",
                    "used_by": 1,
                }
            ],
            "tenant": "acme",
        },
        "stamps": {"catalogue": "c" * 32, "model": "model-1", "policy": "p" * 32, "prompt": "i" * 32, "workflow": 1},
        "task_id": "tsk_00000000000000000000000000000001",
        "trace": "trc_1",
        "updated_at": "2026-10-09T12:00:00.000Z",
        "version": 3,
    }
    text = canonical(body).decode()
    assert encode_checkpoint(decode_checkpoint(text)) == text
    return text


@pytest.mark.parametrize(
    "body",
    [
        "",
        "null",
        "[]",
        "{}",
        '"text"',
        "1",
        '{"business":null}',
        '{"business":[],"execution":{},"security":{}}',
        "{" + '"a":{' * 20_000 + "}" * 20_001,
    ],
    ids=["empty", "null", "list", "object", "text", "number", "no layer", "layer of another kind", "too deep"],
)
def test_what_is_no_body_is_refused(body: str) -> None:
    """R6: nothing is guessed from a body that is none, and nothing but this error comes of it."""
    with pytest.raises(ValueError, match=r".+"):
        restore(body)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: f"{path.parent.name}-{path.stem}")
@pytest.mark.parametrize("wrong", [None, [], 1.5])
def test_a_damaged_part_is_refused(sample: Path, wrong: object) -> None:
    """R6: each part in turn replaced by something else: refused as no checkpoint, and never by another error."""
    body = json.loads(sample.read_text(encoding="utf-8"))
    for name in body:
        with pytest.raises(ValueError, match=r".+"):
            decode_checkpoint(json.dumps({**body, name: wrong}))
