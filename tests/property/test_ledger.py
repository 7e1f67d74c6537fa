"""Whatever goes wrong in whatever order, an action has one effect at most, and its trying ends."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from shared.domain.action import (
    ACTION_LEASE,
    DISPATCH_ATTEMPTS_MAX,
    LOOKUPS_MAX,
    SETTLED,
    ActionStatus,
    EffectClass,
    EffectRules,
    Verb,
    next_ledger_step,
    settlement_of,
)
from shared.ports.tool_gateway import ToolOperation
from tests.builders import a_task_key, an_action_row
from tests.fakes.action_ledger import FakeActionLedger
from tests.fakes.clock import NOON
from tests.fakes.downstream import Downstream, Kind, Mishap
from tests.fakes.store import World

# Honest pairs: the class says what the system behind it really can do.
PARTNERS = st.sampled_from(
    [
        (EffectClass.KEYED_WRITE, Kind.HONOURS_KEYS, True),
        (EffectClass.KEYED_WRITE, Kind.HONOURS_KEYS, False),
        (EffectClass.REVERSIBLE_WRITE, Kind.LOOKUP_ONLY, True),
        (EffectClass.REVERSIBLE_WRITE, Kind.NEITHER, False),
        (EffectClass.IRREVERSIBLE_WRITE, Kind.LOOKUP_ONLY, True),
        (EffectClass.IRREVERSIBLE_WRITE, Kind.NEITHER, False),
    ]
)
WINDOWS = st.sampled_from([None, timedelta(minutes=2), timedelta(hours=1)])
# What happens to one attempt: the provider's part, and how far our worker gets.
ATTEMPTS = st.lists(
    st.tuples(
        st.sampled_from([None, *Mishap]),
        st.sampled_from(["settles", "dies with the answer", "dies before the call", "settles too late"]),
        st.integers(0, 4_000),
    ),
    min_size=1,
    max_size=25,
)


@given(PARTNERS, WINDOWS, ATTEMPTS, st.integers(0, 6), st.booleans())
def test_one_effect_at_most_and_an_end(
    partner: tuple[EffectClass, Kind, bool],
    window: timedelta | None,
    attempts: list[tuple[Mishap | None, str, int]],
    lookups_unclear: int,
    may_send: bool,
) -> None:
    """B01, B07 and B63: random mishaps, deaths and delays: never two effects, never more tries than the rules allow."""
    effect, kind, can_look_up = partner
    rules = EffectRules(effect=effect, can_look_up=can_look_up, key_window=window)
    world, key = World(), a_task_key()
    row = an_action_row(key, effect=effect)
    world.actions[key.key, row.operation] = row
    downstream = Downstream(kind=kind, lookups_unclear=lookups_unclear)
    ledger = FakeActionLedger(world)

    for mishap, fate, seconds in attempts:
        world.clock.advance(timedelta(seconds=seconds))
        now = world.clock.now()
        current = world.actions[key.key, row.operation]
        step = next_ledger_step(current, rules, now=now, may_send=may_send)
        if step.verb not in {Verb.SEND, Verb.LOOK_UP}:
            continue
        if window is not None and step.verb is Verb.SEND and downstream.effects:
            # The provider still knows the key when the request arrives; otherwise it would act again.
            assert current.first_sent_at is not None
            assert now + ACTION_LEASE < current.first_sent_at + window
        claim = ledger.claim(
            key, row.operation, expected_fence=current.fence, verb=step.verb, now=now, lease_ends_at=now + ACTION_LEASE
        )
        assert claim is not None
        assert claim.won
        if fate == "dies before the call":
            continue
        downstream.mishaps.clear()
        downstream.mishaps.extend([mishap] if mishap else [])
        operation = ToolOperation.PERFORM if step.verb is Verb.SEND else ToolOperation.LOOKUP
        reply = downstream.answer("send", operation, key=row.operation, arguments={"amount": 1})
        if fate == "dies with the answer":
            continue
        if fate == "settles too late":
            world.clock.advance(ACTION_LEASE)
        settlement = settlement_of(reply, claim.row, asked=step.verb)
        ledger.settle(key, row.operation, settlement, fence=claim.row.fence, now=world.clock.now())

    known = world.actions[key.key, row.operation]
    assert len(downstream.effects) <= 1
    assert known.attempts <= DISPATCH_ATTEMPTS_MAX
    assert known.lookups <= LOOKUPS_MAX
    if known.status is ActionStatus.DONE:
        assert len(downstream.effects) == 1
    if known.status is ActionStatus.FAILED:
        assert downstream.effects == []


@given(PARTNERS, st.booleans())
def test_every_open_row_has_a_next_step_that_ends(partner: tuple[EffectClass, Kind, bool], may_send: bool) -> None:
    """B63: from any counts, with a provider that never answers, a person is reached in a bounded number of steps."""
    effect, _, can_look_up = partner
    rules = EffectRules(effect=effect, can_look_up=can_look_up)
    row = an_action_row(effect=effect)
    now = NOON

    for _ in range(DISPATCH_ATTEMPTS_MAX + LOOKUPS_MAX + 1):
        step = next_ledger_step(row, rules, now=now, may_send=may_send)
        if step.verb in {Verb.REVIEW, Verb.WITHHOLD}:
            break
        counted = {"attempts": row.attempts + 1} if step.verb is Verb.SEND else {"lookups": row.lookups + 1}
        sent = {"status": ActionStatus.OUTCOME_UNKNOWN, "first_sent_at": row.first_sent_at or now}
        row = row.model_copy(update=counted | sent)
        now += timedelta(hours=1)
    else:
        raise AssertionError(row)

    assert row.status not in SETTLED
