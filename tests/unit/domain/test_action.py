"""The ledger's rules: what may be sent, what has to be asked first, and what only a person may decide."""

from datetime import timedelta

import pytest

from shared.domain.action import (
    ACTION_LEASE,
    DISPATCH_ATTEMPTS_MAX,
    FACTS_BYTES_MAX,
    LOOKUPS_MAX,
    REASON_CHARACTERS_MAX,
    RETRY_PAUSE,
    RETRY_PAUSE_MAX,
    SETTLED,
    Action,
    ActionRow,
    ActionSpec,
    ActionStatus,
    Arguments,
    EffectClass,
    EffectRules,
    ToolOutcome,
    ToolReply,
    Verb,
    next_ledger_step,
    retry_pause,
    settlement_of,
)
from shared.domain.canonical import canonical
from tests.builders import an_action_row
from tests.fakes.clock import NOON

WRITES = [EffectClass.KEYED_WRITE, EffectClass.REVERSIBLE_WRITE, EffectClass.IRREVERSIBLE_WRITE]
OPEN = [ActionStatus.INTENT, ActionStatus.IN_FLIGHT, ActionStatus.OUTCOME_UNKNOWN]
UNCLEAR = [ActionStatus.IN_FLIGHT, ActionStatus.OUTCOME_UNKNOWN]


def a_row(
    status: ActionStatus = ActionStatus.OUTCOME_UNKNOWN, effect: EffectClass = EffectClass.KEYED_WRITE, **fields: object
) -> ActionRow:
    """Make a row of the ledger; an unclear one was sent once, a minute ago."""
    sent = {} if status is ActionStatus.INTENT else {"attempts": 1, "first_sent_at": NOON - timedelta(minutes=1)}
    return an_action_row(status=status, effect=effect).model_copy(update=sent | fields)


def rules(
    effect: EffectClass = EffectClass.KEYED_WRITE, *, can_look_up: bool = True, key_window: timedelta | None = None
) -> EffectRules:
    """Make the rules of a tool."""
    return EffectRules(effect=effect, can_look_up=can_look_up, key_window=key_window)


def verb(row: ActionRow, of: EffectRules) -> Verb:
    """What may be done about a row at noon."""
    return next_ledger_step(row, of, now=NOON).verb


@pytest.mark.parametrize("effect", EffectClass)
@pytest.mark.parametrize("status", sorted(SETTLED))
def test_a_settled_action_is_answered_and_never_repeated(status: ActionStatus, effect: EffectClass) -> None:
    """C-D: what the ledger knows is not done again."""
    assert verb(a_row(status, effect), rules(effect)) is Verb.ANSWER


@pytest.mark.parametrize("effect", EffectClass)
@pytest.mark.parametrize("status", OPEN)
def test_a_live_lease_keeps_everybody_else_out(status: ActionStatus, effect: EffectClass) -> None:
    """B22: while one attempt is at work, another is told to come back."""
    row = a_row(status, effect, lease_ends_at=NOON + timedelta(milliseconds=1))

    assert verb(row, rules(effect)) is Verb.BUSY


@pytest.mark.parametrize("status", UNCLEAR)
def test_a_lease_ends_at_its_instant(status: ActionStatus) -> None:
    """I2: a dead worker's lease lapses by the clock, and by nothing else."""
    row = a_row(status, EffectClass.REVERSIBLE_WRITE, lease_ends_at=NOON)

    assert verb(row, rules(EffectClass.REVERSIBLE_WRITE)) is Verb.LOOK_UP


@pytest.mark.parametrize("effect", EffectClass)
def test_an_intent_that_nobody_claimed_is_sent(effect: EffectClass) -> None:
    """C-B: after the intent and before the call, nothing has happened yet."""
    assert verb(a_row(ActionStatus.INTENT, effect), rules(effect)) is Verb.SEND


@pytest.mark.parametrize("status", UNCLEAR)
@pytest.mark.parametrize(
    ("effect", "can_look_up", "expected"),
    [
        (EffectClass.READ, True, Verb.SEND),
        (EffectClass.READ, False, Verb.SEND),
        (EffectClass.KEYED_WRITE, True, Verb.SEND),
        (EffectClass.KEYED_WRITE, False, Verb.SEND),
        (EffectClass.REVERSIBLE_WRITE, True, Verb.LOOK_UP),
        (EffectClass.REVERSIBLE_WRITE, False, Verb.REVIEW),
        (EffectClass.IRREVERSIBLE_WRITE, True, Verb.LOOK_UP),
        (EffectClass.IRREVERSIBLE_WRITE, False, Verb.REVIEW),
    ],
)
def test_each_effect_class_has_its_answer_to_not_knowing(
    status: ActionStatus, effect: EffectClass, *, can_look_up: bool, expected: Verb
) -> None:
    """C-C and B01: a read or a key is repeated, the rest is asked about, and where nobody can say, a person decides."""
    assert verb(a_row(status, effect), rules(effect, can_look_up=can_look_up)) is expected


@pytest.mark.parametrize("effect", WRITES)
def test_the_third_failed_send_goes_to_a_person(effect: EffectClass) -> None:
    """B63: attempts are counted, and there is an end to them."""
    row = a_row(ActionStatus.INTENT, effect, attempts=DISPATCH_ATTEMPTS_MAX)

    assert verb(row, rules(effect)) is Verb.REVIEW


def test_a_read_is_repeated_more_often_and_not_for_ever() -> None:
    """B63: a read costs little and is bounded all the same."""
    assert verb(a_row(effect=EffectClass.READ, attempts=LOOKUPS_MAX - 1), rules(EffectClass.READ)) is Verb.SEND
    assert verb(a_row(effect=EffectClass.READ, attempts=LOOKUPS_MAX), rules(EffectClass.READ)) is Verb.REVIEW
    assert (
        verb(a_row(ActionStatus.INTENT, EffectClass.READ, attempts=LOOKUPS_MAX), rules(EffectClass.READ)) is Verb.REVIEW
    )


def test_a_key_that_was_sent_too_often_is_asked_about() -> None:
    """B63: after the last repeat the provider is asked instead."""
    row = a_row(attempts=DISPATCH_ATTEMPTS_MAX)

    assert verb(row, rules()) is Verb.LOOK_UP
    assert verb(row, rules(can_look_up=False)) is Verb.REVIEW


@pytest.mark.parametrize("effect", WRITES)
def test_look_ups_without_an_answer_end_with_a_person(effect: EffectClass) -> None:
    """B63: a provider that never says what happened is not asked for ever."""
    row = a_row(effect=effect, attempts=DISPATCH_ATTEMPTS_MAX, lookups=LOOKUPS_MAX)

    assert verb(row, rules(effect)) is Verb.REVIEW


def test_a_forgotten_key_is_never_sent_again() -> None:
    """C-C: outside the window in which the provider remembers the key, the same key would act twice."""
    window = timedelta(minutes=10)
    late = a_row(first_sent_at=NOON - window)

    assert verb(late, rules(key_window=window)) is Verb.LOOK_UP
    assert verb(late, rules(key_window=window, can_look_up=False)) is Verb.REVIEW


def test_a_key_is_not_sent_so_late_that_it_arrives_forgotten() -> None:
    """C-C: a send takes time; the key has to be remembered until it has arrived."""
    window = timedelta(minutes=10)
    still_there_on_arrival = a_row(first_sent_at=NOON - window + ACTION_LEASE + timedelta(milliseconds=1))
    gone_on_arrival = a_row(first_sent_at=NOON - window + ACTION_LEASE)

    assert verb(still_there_on_arrival, rules(key_window=window)) is Verb.SEND
    assert verb(gone_on_arrival, rules(key_window=window)) is Verb.LOOK_UP


@pytest.mark.parametrize("effect", EffectClass)
@pytest.mark.parametrize("asked", [Verb.SEND, Verb.LOOK_UP])
@pytest.mark.parametrize("outcome", [ToolOutcome.UNKNOWN, ToolOutcome.PENDING])
def test_no_answer_is_not_an_answer(outcome: ToolOutcome, asked: Verb, effect: EffectClass) -> None:
    """I3: a timeout, an error or "still working" leaves the outcome unknown, whatever was asked."""
    settled = settlement_of(ToolReply(outcome=outcome), a_row(effect=effect), asked=asked)

    assert settled.status is ActionStatus.OUTCOME_UNKNOWN


@pytest.mark.parametrize("asked", [Verb.SEND, Verb.LOOK_UP])
def test_done_is_done(asked: Verb) -> None:
    """C-C: what the provider says has happened has happened."""
    reply = ToolReply(outcome=ToolOutcome.DONE, reference="R-1", facts={"paid_minor": 450})
    settled = settlement_of(reply, a_row(), asked=asked)

    assert (settled.status, settled.reference, settled.facts) == (ActionStatus.DONE, "R-1", {"paid_minor": 450})


@pytest.mark.parametrize(
    "facts",
    [
        {"id": 2**60},
        {"note": "\ud800"},
        {"text": "x" * 60_000},
        {f"field_{number}": "x" * 50 for number in range(500)},
    ],
    ids=["number beyond exact", "half a character", "a document", "too many"],
)
def test_no_detail_of_an_answer_can_keep_it_from_being_recorded(facts: Arguments) -> None:
    """B07 and B59: a provider's odd facts are left out; that the effect has happened is written down."""
    reply = ToolReply(outcome=ToolOutcome.DONE, reference="R-1", facts={"paid_minor": 450, **facts}, reason="r" * 9_000)
    settled = settlement_of(reply, a_row(), asked=Verb.SEND)

    assert (settled.status, settled.reference, settled.facts["paid_minor"]) == (ActionStatus.DONE, "R-1", 450)
    assert len(canonical(dict(settled.facts))) <= FACTS_BYTES_MAX
    assert len(settled.reason) <= REASON_CHARACTERS_MAX


def test_what_was_never_sent_may_be_sent() -> None:
    """B07: only proof that nothing left us makes an action fresh again."""
    first = a_row(ActionStatus.IN_FLIGHT, first_sent_at=NOON, lease_ends_at=NOON + ACTION_LEASE)
    settled = settlement_of(ToolReply(outcome=ToolOutcome.NOT_SENT), first, asked=Verb.SEND)

    assert settled.status is ActionStatus.INTENT


@pytest.mark.parametrize("outcome", [ToolOutcome.NOT_SENT, ToolOutcome.FAILED])
def test_a_repeat_that_was_refused_says_nothing_about_the_first_send(outcome: ToolOutcome) -> None:
    """B07: an earlier attempt under the same key may have arrived, so the outcome stays unknown."""
    second = a_row(ActionStatus.IN_FLIGHT, attempts=2, lease_ends_at=NOON + ACTION_LEASE)

    assert settlement_of(ToolReply(outcome=outcome), second, asked=Verb.SEND).status is ActionStatus.OUTCOME_UNKNOWN


def test_a_first_send_that_was_refused_has_failed() -> None:
    """A definite refusal of the only send is an outcome."""
    first = a_row(ActionStatus.IN_FLIGHT, first_sent_at=NOON, lease_ends_at=NOON + ACTION_LEASE)

    assert settlement_of(ToolReply(outcome=ToolOutcome.FAILED), first, asked=Verb.SEND).status is ActionStatus.FAILED


@pytest.mark.parametrize(
    ("effect", "expected"),
    [
        (EffectClass.READ, ActionStatus.INTENT),
        (EffectClass.KEYED_WRITE, ActionStatus.INTENT),
        (EffectClass.REVERSIBLE_WRITE, ActionStatus.INTENT),
        (EffectClass.IRREVERSIBLE_WRITE, ActionStatus.OUTCOME_UNKNOWN),
    ],
)
def test_an_unknown_key_frees_all_but_the_irreversible(effect: EffectClass, expected: ActionStatus) -> None:
    """C-C: "no such key" is proof for what can be undone, and never enough to send what cannot."""
    settled = settlement_of(ToolReply(outcome=ToolOutcome.ABSENT), a_row(effect=effect), asked=Verb.LOOK_UP)

    assert settled.status is expected


def test_absent_answers_a_look_up_and_nothing_else() -> None:
    """A provider that answers "no such key" to a send has not said what it did."""
    reply = ToolReply(outcome=ToolOutcome.ABSENT)

    assert settlement_of(reply, a_row(), asked=Verb.SEND).status is ActionStatus.OUTCOME_UNKNOWN


def test_a_look_up_that_never_left_us_is_no_news() -> None:
    """B07: that a question was not asked is no proof that nothing was done."""
    reply = ToolReply(outcome=ToolOutcome.NOT_SENT)

    assert settlement_of(reply, a_row(), asked=Verb.LOOK_UP).status is ActionStatus.OUTCOME_UNKNOWN


def test_pauses_grow_and_are_bounded() -> None:
    """B63: an unclear operation is looked at less and less often, and never less than every quarter of an hour."""
    pauses = [retry_pause(tries) for tries in range(1, 40)]

    assert pauses[0] == RETRY_PAUSE
    assert pauses == sorted(pauses)
    assert pauses[-1] == RETRY_PAUSE_MAX


@pytest.mark.parametrize(
    "other",
    [
        {"amount_minor": 8_200},
        {"payee": "V-205"},
        {"currency": "USD"},
        {"expedite": True},
        {"amount_minor": "820"},
        {"amount_minor": True},
    ],
)
def test_the_digest_of_an_action_covers_every_argument(other: Arguments) -> None:
    """B03: another amount, payee, currency, extra argument or type is another action."""
    arguments: Arguments = {"amount_minor": 820, "payee": "V-204", "currency": "EUR"}

    assert an_action(arguments).digest != an_action(arguments | other).digest


def test_the_digest_of_an_action_covers_its_tool_and_key() -> None:
    """B03: the same arguments under another tool or operation are another action."""
    digests = {
        an_action({"amount_minor": 820}, tool=tool, operation=operation).digest
        for tool in ("refund", "charge")
        for operation in ("acme:tsk:v1:1:refund", "acme:tsk:v2:1:refund")
    }

    assert len(digests) == 4


def an_action(arguments: Arguments, *, tool: str = "refund", operation: str = "acme:tsk:v1:1:refund") -> Action:
    """Make an action."""
    return Action(
        operation=operation,
        ordinal=1,
        request_version=1,
        spec=ActionSpec(tool=tool, arguments=arguments),
        effect=EffectClass.KEYED_WRITE,
    )
