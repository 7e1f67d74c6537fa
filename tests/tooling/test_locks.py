"""The locks pin everything and name no host."""

import json
import re
from pathlib import Path

import pytest

from tooling.locks import IN_THE_LAMBDA_RUNTIME
from tooling.python_packages import locked_entry
from tooling.steps import ROOT, StepFailed

LOCKS = sorted((ROOT / "requirements").glob("*.txt"))


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_every_python_package_is_pinned_with_hashes(lock: Path) -> None:
    """Another file under the same version is refused, whoever serves it."""
    entries = re.split(r"\n(?=\S)", lock.read_text().strip())

    assert len(entries) > 5
    for entry in entries:
        assert re.match(r"^[a-z0-9][a-z0-9._-]*==\S+", entry), entry
        assert "--hash=sha256:" in entry, entry


@pytest.mark.parametrize("lock", [*LOCKS, ROOT / "package-lock.json"], ids=lambda path: path.name)
def test_no_lock_names_a_host(lock: Path) -> None:
    """The locks work with any registry, so a mirror needs settings of its own and no edit."""
    assert "://" not in lock.read_text()


def test_every_npm_package_is_pinned_with_its_digest() -> None:
    """The same holds for npm: a digest for every package, an address for none."""
    packages = json.loads((ROOT / "package-lock.json").read_text())["packages"]
    fetched = {name: entry for name, entry in packages.items() if name}

    assert {"node_modules/aws-cdk", "node_modules/asl-validator"} <= fetched.keys()
    for name, entry in fetched.items():
        assert entry["integrity"].startswith("sha512-"), name
        assert "resolved" not in entry, name


def test_what_is_deployed_is_what_is_tested() -> None:
    """Each runtime package has the version that the tests run with, and none that Lambda brings itself."""
    runtime, dev = (re.findall(r"^(\S+?)==(\S+)", lock.read_text(), re.MULTILINE) for lock in reversed(LOCKS))

    assert set(runtime) <= set(dev)
    assert not {name for name, _ in runtime} & set(IN_THE_LAMBDA_RUNTIME)


def test_one_package_is_cut_out_of_a_lock_with_its_hashes() -> None:
    """What installs the installer is held to the same hashes."""
    lock = "aa==1 \\\n    --hash=sha256:1\nuv==0.1 \\\n    --hash=sha256:2 \\\n    --hash=sha256:3\nzz==1\n"

    assert locked_entry(lock, "uv") == "uv==0.1 \\\n    --hash=sha256:2 \\\n    --hash=sha256:3\n"


def test_a_lock_without_the_package_stops_set_up(capsys: pytest.CaptureFixture[str]) -> None:
    """The person is told what to do."""
    with pytest.raises(StepFailed):
        locked_entry("aa==1\n", "uv")

    assert "make lock" in capsys.readouterr().err
