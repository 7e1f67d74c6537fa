"""Set-up steps: what they refuse, what they leave out, and what they say when they cannot go on."""

import base64
import hashlib
import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tooling.dynamodb_local import require_digest, unpack
from tooling.lambda_dependencies import CLOUD_BYTES_MAX, DEPENDENCIES, size_of, trim
from tooling.steps import ROOT, StepFailed, run


def test_a_step_that_cannot_reach_the_registry_says_what_is_missing_and_what_to_do(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """A machine without access learns the reason, the missing part and the remedy, in this order."""
    program = "import sys; sys.exit('could not connect to the index')"

    with pytest.raises(StepFailed) as caught:
        run([sys.executable, "-c", program], problem="pip could not install uv.", remedy="Missing: the packages.")

    assert caught.value.code == 1
    said = capfd.readouterr().err
    assert (
        said.index("could not connect") < said.index("pip could not install uv.") < said.index("Missing: the packages.")
    )


def test_npm_without_its_registry_stops_set_up_with_the_remedy(tmp_path: Path) -> None:
    """The real npm against a closed port: the person is told in words, and the step counts as not done."""
    script = "from tooling import node_packages, steps; node_packages.install()"
    nowhere = "http://127.0.0.1:9"
    environment = {
        **os.environ,
        "NPM_CONFIG_REGISTRY": nowhere,
        "NPM_CONFIG_FETCH_RETRIES": "0",
        "NPM_CONFIG_CACHE": str(tmp_path / "cache"),
        "PYTHONPATH": str(ROOT),
    }
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    for name in ("package.json", "package-lock.json", ".npmrc"):
        (checkout / name).write_bytes((ROOT / name).read_bytes())
    (checkout / ".venv").symlink_to(ROOT / ".venv")
    for module in (ROOT / "tooling").glob("*.py"):
        target = checkout / "tooling" / module.name
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(module.read_bytes())

    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=checkout,
        env={**environment, "PYTHONPATH": str(checkout)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 1
    assert "npm could not install the packages of package-lock.json" in done.stderr
    assert "NPM_CONFIG_REGISTRY" in done.stderr


def test_an_archive_with_another_digest_is_refused(tmp_path: Path) -> None:
    """Whatever is served under the right name and version, only the recorded bytes are unpacked."""
    archive = tmp_path / "a.tgz"
    archive.write_bytes(b"the right bytes")
    digest = base64.b64encode(hashlib.sha512(b"the right bytes").digest()).decode()
    require_digest(archive, digest)

    archive.write_bytes(b"other bytes")

    with pytest.raises(StepFailed):
        require_digest(archive, digest)


def test_only_regular_files_of_the_one_folder_are_unpacked(tmp_path: Path) -> None:
    """Links, and paths that lead elsewhere, stay in the archive."""
    archive = tmp_path / "a.tgz"
    with tarfile.open(archive, "w:gz") as tar:
        names = [
            "package/emulator/lib/a.jar",
            "package/README.md",
            "package/emulator/../../outside",
            "/package/emulator/b",
        ]
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = 4
            tar.addfile(member, io.BytesIO(b"data"))
        link = tarfile.TarInfo("package/emulator/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)

    unpack(archive, tmp_path / "out")

    found = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(found) == ["a.tgz", "out/lib/a.jar"]


def test_trimming_keeps_code_licences_and_metadata(tmp_path: Path) -> None:
    """What an import, a licence or a look-up at run time needs stays."""
    kept = ["a/__init__.py", "a/_a.so", "a/py.typed", "a-1.dist-info/METADATA", "a-1.dist-info/licenses/LICENSE"]
    gone = [
        "a/_a.c",
        "a/a.pyi",
        "a/__pycache__/a.pyc",
        "a-1.dist-info/RECORD",
        "a-1.dist-info/sboms/a.json",
        "a-stubs/a.pyi",
        "a/swagger_ui/page.min.js",
    ]
    for name in [*kept, *gone]:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")

    trim(tmp_path)

    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()) == sorted(
        kept
    )


def test_the_layer_for_the_cloud_is_within_its_limit() -> None:
    """27 MB unzipped, without boto3, which the runtime brings."""
    packages = DEPENDENCIES / "cloud" / "python"

    assert 0 < size_of(DEPENDENCIES / "cloud") <= CLOUD_BYTES_MAX
    assert not {"boto3", "botocore", "jmespath", "urllib3"} & {path.name for path in packages.iterdir()}


def test_make_lists_every_target_with_a_line() -> None:
    """`make` alone is the table of contents, and it does nothing."""
    listing = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True).stdout  # noqa: S607

    for target in ("setup", "check", "test", "synth", "demo", "up", "down", "bench", "crash", "clean"):
        assert f"make {target} " in listing
    assert "test-unit" in listing
