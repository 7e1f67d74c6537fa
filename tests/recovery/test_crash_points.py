"""Every story of every workflow, at every call: see `docs/crash-suite.md`."""

import pytest

from shared.workflows.registry import discover
from tests.recovery.suite import SAMPLED, try_all
from tests.recovery.synthetic import SYNTHETIC


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Try every workflow that is found, or the one that was asked for."""
    chosen = metafunc.config.getoption("--workflow")
    metafunc.parametrize("name", [chosen] if chosen else [*sorted(discover()), SYNTHETIC.name])


# Half a minute on two idle processors; a busy machine takes several times that.
@pytest.mark.timeout(1_500)
def test_nothing_is_lost_and_nothing_happens_twice(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """C, R1, R2, R8, B01, B05, B11, B20, B22: whatever goes wrong at whichever call, every promise is kept.

    Every single fault at every call, and a sample of the points at which two meet; `make crash` tries all of them.
    """
    report = try_all(name, sample=True)

    with capsys.disabled():
        print(f"\n{name}: {report.tried} crash points tried of {report.found}, {len(report.violations)} violations")  # noqa: T201
    assert not report.violations, "\n".join(map(str, report.violations[:20]))
    assert report.found >= report.points_min, "points were lost: a story, a call, or a kind of trouble"
    assert report.tried > report.found // SAMPLED
