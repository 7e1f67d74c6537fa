"""The contracts of `Clock` and `Ids`, on the fakes and on the system."""

import re
import time
from datetime import UTC, timedelta

import pytest

from shared.adapters.system import SystemClock, SystemIds
from shared.domain.instants import as_instant, format_instant
from shared.ports.clock import Clock, Ids
from tests.fakes.clock import NOON, FakeClock, FakeIds


@pytest.mark.parametrize("clock", [FakeClock(), SystemClock()], ids=["fake", "real"])
def test_now_is_an_instant(clock: Clock) -> None:
    """UTC, to the millisecond that is stored, so that what is compared later is what was compared now."""
    now = clock.now()
    assert now.tzinfo is UTC
    assert now == as_instant(now)
    assert format_instant(now).endswith("Z")
    assert clock.now() >= now


def test_the_system_clock_tells_the_time() -> None:
    """Within the millisecond it cuts off."""
    before = time.time()
    now = SystemClock().now().timestamp()
    assert before - 0.001 <= now <= time.time()


def test_the_fake_clock_moves_when_it_is_moved() -> None:
    """And only then."""
    clock = FakeClock()
    assert clock.now() == clock.now() == NOON
    assert clock.advance(timedelta(microseconds=1999)) == NOON + timedelta(milliseconds=1)
    clock.set(NOON - timedelta(days=1))
    assert clock.now() == NOON - timedelta(days=1)


@pytest.mark.parametrize("ids", [FakeIds(), SystemIds()], ids=["fake", "real"])
def test_an_id_is_a_prefix_and_128_bits(ids: Ids) -> None:
    """In the form that keys, tokens of transactions and schedule names have room for; never the same twice."""
    made = [ids.new("tsk") for _ in range(100)]
    assert all(re.match(r"tsk_[0-9a-f]{32}\Z", each) for each in made)
    assert len(set(made)) == 100
    assert all(len(each) <= 36 for each in made)


def test_fake_ids_repeat_with_their_seed_alone() -> None:
    """A run can be played again; two worlds need not collide."""
    assert FakeIds(3).new("a") == FakeIds(3).new("a")
    assert FakeIds(3).new("a") != FakeIds(4).new("a")
