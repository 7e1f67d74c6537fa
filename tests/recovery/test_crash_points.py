"""Every story of every workflow, at every point: see `docs/crash-suite.md`."""

import pytest

from shared.workflows.registry import discover
from tests.recovery.suite import try_all
from tests.recovery.synthetic import SYNTHETIC


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Try every workflow that is found, or the one that was asked for."""
    chosen = metafunc.config.getoption("--workflow")
    metafunc.parametrize("name", [chosen] if chosen else [*sorted(discover()), SYNTHETIC.name])


# A minute and a half on two idle processors; a busy machine takes several times that.
@pytest.mark.timeout(1_500)
def test_nothing_is_lost_and_nothing_happens_twice(name: str) -> None:
    """C, R1, R2, R8, B01, B05, B11, B20, B22: whatever goes wrong at whichever call, every promise is kept."""
    report = try_all(name)

    assert not report.violations, "\n".join(map(str, report.violations[:20]))
    assert report.tried >= report.points_min, "points were lost: a story, a call, or a kind of trouble"
