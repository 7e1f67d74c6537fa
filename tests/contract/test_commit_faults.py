"""Commits on DynamoDB when replies are lost, rivals are at the same items, or patience is asked for (B11, B43)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from shared.adapters.dynamodb.checkpoints import checkpoint_item
from shared.adapters.dynamodb.heads import head_item
from shared.adapters.dynamodb.store_calls import TRIES_MAX, UNANSWERED_MAX, Patience
from shared.adapters.dynamodb.task_records import DynamoTaskRecords
from shared.adapters.dynamodb.transaction import TaskTables
from shared.domain.errors import DependencyTimeout, DuplicateEvent, InvariantBroken, StaleVersion, Throttled
from shared.domain.identity import TaskKey
from shared.domain.outbox import StartExecution
from shared.ports.task_records import Commit
from tests.builders import a_checkpoint, a_commit, a_task_key, a_wait, an_inbox_row
from tests.contract.faults import Answer, Faults, Lost, Refusal, Unreachable
from tests.contract.stores import TABLES, Stores, real_stores
from tests.contract.tables import table_name
from tests.fakes.clock import NOON

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

TRANSACT = "TransactWriteItems"
START = StartExecution(workflow="refund", run=1, version=1)
CONDITION = {"Code": "ConditionalCheckFailed"}
CONFLICT = {"Code": "TransactionConflict"}
NONE = {"Code": "None"}


@dataclass(slots=True)
class Pauses:
    """Sleeps nowhere and keeps how long it was asked to."""

    seconds: list[float] = field(default_factory=list)

    @property
    def patience(self) -> Patience:
        """Patience whose chance always takes the whole pause."""
        return Patience(sleep=self.seconds.append, chance=lambda: 1.0)


@pytest.fixture
def pauses() -> Pauses:
    """Make a patience that is watched."""
    return Pauses()


@pytest.fixture
def records(faults: Faults, pauses: Pauses) -> DynamoTaskRecords:
    """Make the adapter over the failing client."""
    return DynamoTaskRecords(faults.client, TABLES, pauses.patience)


@pytest.fixture
def healthy(dynamodb: "DynamoDBClient") -> Stores:
    """Make the adapters over a healthy client, to prepare and to look."""
    return real_stores(dynamodb)


@pytest.fixture
def first(tenant: str, healthy: Stores) -> Commit:
    """Commit version 1 of a task."""
    commit = a_commit(a_checkpoint(a_task_key(tenant=tenant)))
    healthy.records.commit(commit)
    return commit


def following(first: Commit, attempt: int = 2) -> Commit:
    """Make a commit of version 2 with an event, a wait and a message."""
    key = first.key
    task = a_checkpoint(key, version=2)
    return a_commit(task, attempt=attempt, inbox=an_inbox_row(key), opened=[a_wait(key)], messages=[START])


def cancelled(*reasons: Mapping[str, Any]) -> Refusal:
    """Make a cancelled transaction."""
    return Refusal(code="TransactionCanceledException", reasons=reasons)


def writer_of(healthy: Stores, key: TaskKey) -> tuple[int, str]:
    """Say how far the task has come, and by whom."""
    stored = healthy.records.load(key)
    assert stored is not None
    return stored.head.version, stored.head.attempt_id


# --- B11: our own write, whose reply was lost -------------------------------------------------------------------------


@pytest.mark.parametrize("times", range(1, UNANSWERED_MAX + 1))
def test_a_lost_reply_is_no_lost_race(
    faults: Faults, records: DynamoTaskRecords, healthy: Stores, first: Commit, times: int
) -> None:
    """B11, run 1: applied, and the reply lost once, twice or every time: a success, written once, reported once."""
    commit = following(first)
    faults.plan(TRANSACT, *[Lost()] * times)

    records.commit(commit)

    assert faults.unmet == 0
    assert writer_of(healthy, first.key) == (2, commit.attempt_id)
    assert len(healthy.back_door.staged(first.key)) == 1


def test_a_lost_reply_to_a_creation_is_recognised(
    faults: Faults, records: DynamoTaskRecords, healthy: Stores, tenant: str
) -> None:
    """B11, run 3: the same for a task and a wait that the commit makes."""
    key = a_task_key(tenant=tenant)
    commit = a_commit(a_checkpoint(key), opened=[a_wait(key)], messages=[START])
    faults.plan(TRANSACT, Lost())

    records.commit(commit)

    assert writer_of(healthy, key) == (1, commit.attempt_id)
    assert healthy.waits.get(tenant, a_wait(key).correlation_id) == a_wait(key)


def test_every_try_sends_the_same_bytes_under_the_same_token(
    faults: Faults, records: DynamoTaskRecords, first: Commit
) -> None:
    """B43: DynamoDB can tell a repeat from another request only if nothing in it differs."""
    commit = following(first)
    faults.plan(TRANSACT, cancelled(CONFLICT), Lost(), Refusal(code="ThrottlingException"))

    records.commit(commit)

    sent = faults.sent[TRANSACT]
    assert len(sent) == 4
    assert len(set(sent)) == 1
    assert json.loads(sent[0])["ClientRequestToken"] == commit.attempt_id


@pytest.mark.parametrize("part", ["head", "checkpoint"])
def test_a_condition_that_met_our_own_work_is_a_success(
    faults: Faults, records: DynamoTaskRecords, first: Commit, part: str
) -> None:
    """B11, run 1: past DynamoDB's ten minutes a repeat fails its conditions, and what they met names our attempt."""
    commit = following(first)
    mine = head_item(commit) if part == "head" else checkpoint_item(commit)
    met: dict[str, Any] = {**CONDITION, "Item": mine}
    reasons: list[Mapping[str, Any]] = [met, NONE] if part == "head" else [CONDITION, met]
    faults.plan(TRANSACT, cancelled(*reasons))

    records.commit(commit)

    assert len(faults.sent[TRANSACT]) == 1


def test_a_condition_that_met_another_attempt_is_a_lost_race(
    faults: Faults, records: DynamoTaskRecords, first: Commit
) -> None:
    """B11, run 2: another writer's name on the item means reload and decide again; nothing is repeated."""
    rival = following(first, attempt=3)
    faults.plan(TRANSACT, cancelled({**CONDITION, "Item": head_item(rival)}))

    with pytest.raises(StaleVersion):
        records.commit(following(first))

    assert len(faults.sent[TRANSACT]) == 1


def test_a_lost_reply_is_recognised_after_others_went_on(
    faults: Faults, records: DynamoTaskRecords, healthy: Stores, first: Commit
) -> None:
    """B11: the commit was applied, its reply lost, and a rival's commit followed before anybody asked again."""
    commit = following(first)
    healthy.records.commit(commit)
    later = a_commit(a_checkpoint(first.key, version=3), attempt=3)
    healthy.records.commit(later)
    # The event's row alone betrays the repeat; the head says nothing about us any more.
    faults.plan(TRANSACT, Unreachable(), cancelled({**CONDITION, "Item": head_item(later)}, NONE, CONDITION))

    records.commit(commit)

    assert writer_of(healthy, first.key) == (3, later.attempt_id)


def test_an_event_that_only_we_wrote_is_no_duplicate(
    faults: Faults, records: DynamoTaskRecords, healthy: Stores, first: Commit
) -> None:
    """B05, B11: after an unanswered try, an inbox row alone is not taken for somebody else's acceptance."""
    commit = following(first)
    faults.plan(TRANSACT, Lost(), cancelled(NONE, NONE, CONDITION))

    records.commit(commit)

    assert writer_of(healthy, first.key) == (2, commit.attempt_id)


def test_an_unanswered_commit_that_left_no_trace_is_not_reported_as_written_or_refused(
    faults: Faults, records: DynamoTaskRecords, healthy: Stores, first: Commit
) -> None:
    """B11: no reply and nothing stored: the caller tries again with the same facts, and nothing is half there."""
    commit = following(first)
    faults.plan(TRANSACT, *[Unreachable()] * UNANSWERED_MAX)

    with pytest.raises(DependencyTimeout):
        records.commit(commit)

    assert writer_of(healthy, first.key) == (1, first.attempt_id)
    records.commit(commit)
    assert writer_of(healthy, first.key) == (2, commit.attempt_id)


def test_a_lost_reply_to_a_quarantine_is_recognised(
    faults: Faults, records: DynamoTaskRecords, healthy: Stores, first: Commit
) -> None:
    """B11: marked once, one review, one alarm."""
    key = first.key
    faults.plan(TRANSACT, Lost())

    records.quarantine(
        key, version=1, reason="a bad seal", review=a_wait(key), messages=(START,), now=NOON, remind_at=NOON
    )

    stored = healthy.records.load(key)
    assert stored is not None
    assert stored.head.quarantine == "a bad seal"
    assert len(healthy.back_door.staged(key)) == 1


# --- B43: every reason of a cancelled transaction is told apart -------------------------------------------------------


@pytest.mark.parametrize("code", ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"])
def test_a_passing_reason_is_waited_out(
    faults: Faults, records: DynamoTaskRecords, healthy: Stores, pauses: Pauses, first: Commit, code: str
) -> None:
    """B43, 1: twice in somebody's way, then through; the pauses double and are bounded by chance."""
    faults.plan(TRANSACT, *[cancelled(NONE, {"Code": code}, NONE)] * 2)

    records.commit(following(first))

    assert writer_of(healthy, first.key)[0] == 2
    assert pauses.seconds == [0.05, 0.1]


@pytest.mark.parametrize(
    "refusal",
    [
        cancelled(NONE, CONFLICT),
        Refusal(code="TransactionInProgressException"),
        Refusal(code="ThrottlingException"),
        Refusal(code="ProvisionedThroughputExceededException"),
        Refusal(code="RequestLimitExceeded"),
    ],
    ids=lambda refusal: refusal.code,
)
def test_patience_has_an_end(
    faults: Faults, records: DynamoTaskRecords, healthy: Stores, first: Commit, refusal: Refusal
) -> None:
    """B43, 1: conflicts and throttling that outlast the backoff are a retry for later, with nothing written."""
    faults.plan(TRANSACT, *[refusal] * TRIES_MAX)

    with pytest.raises(Throttled):
        records.commit(following(first))

    assert len(faults.sent[TRANSACT]) == TRIES_MAX
    assert writer_of(healthy, first.key)[0] == 1


def test_pauses_are_short_enough_for_the_shortest_function(pauses: Pauses) -> None:
    """All pauses together take less than two seconds at their longest."""
    for tries in range(1, TRIES_MAX):
        pauses.patience.pause(tries)
    assert sum(pauses.seconds) < 2


@pytest.mark.parametrize(
    ("reasons", "error"),
    [
        ([CONDITION, NONE, NONE], StaleVersion),
        ([NONE, NONE, CONDITION], DuplicateEvent),
        ([CONDITION, NONE, CONDITION], DuplicateEvent),
        ([{"Code": "ThrottlingError"}, CONDITION, NONE], InvariantBroken),
        ([CONDITION, CONFLICT, NONE], StaleVersion),
        ([CONFLICT, NONE, CONDITION], DuplicateEvent),
        ([CONDITION, {"Code": "ValidationError"}, NONE], StaleVersion),
        ([NONE, {"Code": "ValidationError"}, NONE], InvariantBroken),
        ([CONFLICT, {"Code": "ValidationError"}, NONE], InvariantBroken),
        ([NONE, {"Code": "ItemCollectionSizeLimitExceeded"}, NONE], InvariantBroken),
        ([NONE, {"Code": "SomethingNew"}, NONE], InvariantBroken),
        ([], InvariantBroken),
    ],
)
def test_every_reason_has_its_own_meaning(
    faults: Faults, records: DynamoTaskRecords, first: Commit, reasons: list[dict[str, str]], error: type[Exception]
) -> None:
    """B43, 2: a failed condition decides whatever it is mixed with; what cannot succeed is loud; none is repeated."""
    faults.plan(TRANSACT, cancelled(*reasons))

    with pytest.raises(error):
        records.commit(following(first))

    assert len(faults.sent[TRANSACT]) == 1


def test_a_checkpoint_in_the_way_is_judged_by_the_head_read_again(
    faults: Faults, records: DynamoTaskRecords, healthy: Stores, first: Commit
) -> None:
    """B19, B43: if the head has moved meanwhile it was a race; only if it has not is it evidence of a rollback."""
    healthy.records.commit(following(first, attempt=3))
    faults.plan(TRANSACT, cancelled(NONE, CONDITION, NONE))

    with pytest.raises(StaleVersion):
        records.commit(following(first))


@pytest.mark.parametrize(
    "code", ["ValidationException", "AccessDeniedException", "ResourceNotFoundException", "UnrecognizedClientException"]
)
def test_a_request_that_cannot_succeed_is_loud(
    faults: Faults, records: DynamoTaskRecords, first: Commit, code: str
) -> None:
    """B43: a bug of ours or a missing grant is not waited out."""
    faults.plan(TRANSACT, Refusal(code=code))
    with pytest.raises(InvariantBroken, match=code):
        records.commit(following(first))
    assert len(faults.sent[TRANSACT]) == 1


def test_another_request_under_our_token_is_loud(healthy: Stores, first: Commit) -> None:
    """An attempt id names one commit; DynamoDB itself refuses a second one of that name."""
    commit = a_commit(a_checkpoint(first.key, version=2), attempt=2)
    healthy.records.commit(commit)
    with pytest.raises(InvariantBroken):
        healthy.records.commit(a_commit(a_checkpoint(first.key, version=2, stage="elsewhere"), attempt=2))


def test_a_commit_to_a_table_that_is_not_ours_to_write_is_loud(dynamodb: "DynamoDBClient", tenant: str) -> None:
    """A function that was not given a table writes no row of that kind, and not the rest without it."""
    narrow = TaskTables(heads=table_name("heads"), checkpoints=table_name("checkpoints"))
    key = a_task_key(tenant=tenant)
    with pytest.raises(InvariantBroken):
        DynamoTaskRecords(dynamodb, narrow).commit(a_commit(a_checkpoint(key), inbox=an_inbox_row(key)))
    assert DynamoTaskRecords(dynamodb, narrow).load(key) is None


# --- reads ------------------------------------------------------------------------------------------------------------


def test_a_right_hint_makes_loading_one_call(faults: Faults, records: DynamoTaskRecords, first: Commit) -> None:
    """One consistent batch; a wrong hint costs one more read, no hint makes two."""
    records.load(first.key, version_hint=1)
    assert {name: len(calls) for name, calls in faults.sent.items()} == {"BatchGetItem": 1}
    request = json.loads(faults.sent["BatchGetItem"][0])["RequestItems"]
    assert all(table["ConsistentRead"] is True for table in request.values())

    records.load(first.key, version_hint=7)
    assert {name: len(calls) for name, calls in faults.sent.items()} == {"BatchGetItem": 2, "GetItem": 1}
    records.load(first.key)
    assert {name: len(calls) for name, calls in faults.sent.items()} == {"BatchGetItem": 2, "GetItem": 3}
    assert all(json.loads(call)["ConsistentRead"] is True for call in faults.sent["GetItem"])


def test_a_commit_between_the_two_reads_of_a_batch_is_no_missing_checkpoint(
    faults: Faults, records: DynamoTaskRecords, first: Commit
) -> None:
    """B19: the checkpoint was read before it was written and the head after it; nobody is quarantined for that."""
    faults.plan("BatchGetItem", Answer(body={"Responses": {table_name("heads"): [head_item(first)]}}))
    stored = records.load(first.key, version_hint=1)
    assert stored is not None
    assert stored.checkpoint == first.checkpoint


def test_what_a_batch_left_unanswered_is_asked_again(faults: Faults, records: DynamoTaskRecords, first: Commit) -> None:
    """An unprocessed key is not a missing task."""
    left = {table_name("heads"): {"Keys": [{"task": {"S": first.key.key}}], "ConsistentRead": True}}
    rest = {table_name("checkpoints"): [checkpoint_item(first)]}
    faults.plan("BatchGetItem", Answer(body={"Responses": rest, "UnprocessedKeys": left}))

    stored = records.load(first.key, version_hint=1)

    assert stored is not None
    assert stored.checkpoint == first.checkpoint
    assert json.loads(faults.sent["BatchGetItem"][1])["RequestItems"] == left


def test_a_missing_checkpoint_is_said_to_be_missing(
    records: DynamoTaskRecords, dynamodb: "DynamoDBClient", first: Commit
) -> None:
    """B19: it is for the gates to say what that means."""
    where = {"task": {"S": first.key.key}, "version": {"N": "1"}}
    dynamodb.delete_item(TableName=table_name("checkpoints"), Key=where)
    for hint in (None, 1):
        stored = records.load(first.key, version_hint=hint)
        assert stored is not None
        assert stored.checkpoint is None


def test_a_tampered_column_does_not_pass_for_the_sealed_one(
    records: DynamoTaskRecords, dynamodb: "DynamoDBClient", first: Commit
) -> None:
    """B19: a column of another type, or one that nobody writes, is shown as what matches nothing."""
    dynamodb.update_item(
        TableName=table_name("heads"),
        Key={"task": {"S": first.key.key}},
        UpdateExpression="SET #run = :text, extra = :flag",
        ExpressionAttributeNames={"#run": "run"},
        ExpressionAttributeValues={":text": {"S": "1"}, ":flag": {"BOOL": True}},
    )
    stored = records.load(first.key)
    assert stored is not None
    assert stored.head.columns["run"] == "1"
    assert set(stored.head.columns) - set(first.columns) == {"extra"}


@pytest.mark.parametrize("hint", [None, 1])
def test_a_read_that_is_never_answered_says_so(
    faults: Faults, records: DynamoTaskRecords, first: Commit, hint: int | None
) -> None:
    """B06 d: no answer is not an empty answer."""
    operation = "GetItem" if hint is None else "BatchGetItem"
    faults.plan(operation, *[Unreachable()] * UNANSWERED_MAX)
    with pytest.raises(DependencyTimeout):
        records.load(first.key, version_hint=hint)

    faults.plan(operation, *[Refusal(code="ThrottlingException")] * TRIES_MAX)
    with pytest.raises(Throttled):
        records.load(first.key, version_hint=hint)
