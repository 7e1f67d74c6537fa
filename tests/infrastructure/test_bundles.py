"""What is uploaded: wheels of the right machine, not too much, and handlers that import with nothing else around."""

import importlib.metadata
import json
import subprocess
import sys
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest
from packaging.tags import Tag, compatible_tags, cpython_tags, parse_tag, sys_tags

from tests.infrastructure.synthesis import ROOT, Assembly, Template

DEPENDENCIES = ROOT / ".build" / "dependencies"

# Unzipped, without what the Lambda runtime brings (boto3 and what it needs).
BUNDLE_BYTES_MAX = 27_000_000

# Lambda's Python 3.13 runs on a Linux with this C library; wheels for older ones load there too.
GLIBC_MINOR_MAX = 34
GLIBC_MINOR_MIN = 17

BROUGHT_BY_THE_RUNTIME = ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "urllib3", "six.py")

IMPORT_HANDLER = """
import importlib, sys
sys.path[:0] = {path!r}
module, _, attribute = {handler!r}.rpartition(".")
assert callable(getattr(importlib.import_module(module), attribute))
"""


def tags_of(target: str) -> set[Tag]:
    """Wheel tags that the interpreter of a target accepts."""
    if target == "host":
        return set(sys_tags())
    platforms = [f"manylinux_2_{minor}_aarch64" for minor in range(GLIBC_MINOR_MAX, GLIBC_MINOR_MIN - 1, -1)]
    platforms += ["manylinux2014_aarch64", "linux_aarch64"]
    return {
        *cpython_tags((3, 13), abis=["cp313"], platforms=platforms),
        *compatible_tags((3, 13), interpreter="cp313", platforms=platforms),
    }


def installed_wheels(target: str) -> dict[str, set[Tag]]:
    """Tags of every distribution in a target's layer, by its name."""
    wheels = sorted((DEPENDENCIES / target / "python").glob("*.dist-info/WHEEL"))
    return {
        wheel.parent.name: {
            tag for line in Parser().parsestr(wheel.read_text()).get_all("Tag", []) for tag in parse_tag(line)
        }
        for wheel in wheels
    }


def functions(template: Template) -> Iterator[tuple[str, dict[str, Any]]]:
    """Our Python functions of a stack, by name."""
    for _, resource in template.of_type("AWS::Lambda::Function"):
        if resource["Properties"]["Runtime"].startswith("python"):
            yield resource["Properties"]["FunctionName"], resource["Properties"]


def bytes_below(folder: Path) -> int:
    """What a folder weighs when it is unzipped."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def layer_of(assembly: Assembly) -> Path:
    """Folder of the dependency layer as it will be uploaded."""
    return assembly.asset(assembly.engine, assembly.engine.properties("AWS::Lambda::LayerVersion"))


@pytest.fixture(scope="session")
def runtime_packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with only what the Lambda runtime brings along, linked from this environment."""
    folder = tmp_path_factory.mktemp("runtime")
    site_packages = Path(str(importlib.metadata.distribution("boto3").locate_file("")))
    for name in BROUGHT_BY_THE_RUNTIME:
        (folder / name).symlink_to(site_packages / name)
    return folder


@pytest.mark.parametrize("target", ["cloud", "host"])
def test_every_wheel_is_for_the_target(target: str) -> None:
    """B76: a wheel of another platform would fail at the first import, in production."""
    accepted, wheels = tags_of(target), installed_wheels(target)

    assert "cedarpy-4.12.2.dist-info" in wheels, "run `make setup`"
    for name, tags in wheels.items():
        assert tags & accepted, f"{name} is for {sorted(map(str, tags))}"


def test_every_compiled_module_of_the_cloud_bundle_is_arm(production: Assembly) -> None:
    """B76: the ELF header, not the file's name, says for which processor a module was compiled."""
    arm64, little_endian = 0xB7, 1
    modules = list(layer_of(production).rglob("*.so"))

    assert modules
    for module in modules:
        header = module.read_bytes()[:20]
        assert header[:4] == b"\x7fELF", module.name
        assert header[5] == little_endian, module.name
        assert int.from_bytes(header[18:20], "little") == arm64, module.name
        assert "cpython-313" in module.name or ".abi3." in module.name, module.name


def test_what_the_runtime_brings_is_not_shipped_again(production: Assembly) -> None:
    """Two versions of boto3 are one too many, and the larger half of a bundle."""
    shipped = {path.name for path in (layer_of(production) / "python").iterdir()}

    assert not shipped & set(BROUGHT_BY_THE_RUNTIME)


def test_the_bundle_stays_small(production: Assembly) -> None:
    """Code and dependencies of one function, unzipped, leave the account's limits and cold starts alone."""
    code = production.asset(production.engine, production.engine.function("wake"))

    assert bytes_below(code) + bytes_below(layer_of(production)) <= BUNDLE_BYTES_MAX


def test_only_the_product_is_in_the_code(production: Assembly) -> None:
    """Tests, tools, stacks and caches stay at home; the sandbox's code is in the sandbox's function only."""
    product = production.asset(production.engine, production.engine.function("api"))
    sandbox = production.asset(production.sandbox, production.sandbox.function("sandbox"))

    assert {path.name for path in product.iterdir()} == {"functions", "shared"}
    assert {path.name for path in sandbox.iterdir()} == {"sandbox"}
    assert not [path for path in product.rglob("*") if path.name in {"tests", "__pycache__"} or path.suffix == ".pyc"]


def test_every_data_file_of_the_product_is_in_the_code(production: Assembly) -> None:
    """Policies, schemas and prompts travel with the code that reads them."""
    product = production.asset(production.engine, production.engine.function("api"))
    for package in ("functions", "shared"):
        ours = {
            path.relative_to(ROOT)
            for path in (ROOT / package).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        assert {path.relative_to(product) for path in (product / package).rglob("*") if path.is_file()} == ours


def test_every_function_has_a_folder_and_every_folder_a_function(production: Assembly) -> None:
    """One folder per function, found by its name."""
    handlers = {properties["Handler"] for _, properties in functions(production.engine)}
    folders = {
        ".".join((*path.relative_to(ROOT).with_suffix("").parts, "handler"))
        for path in (ROOT / "functions").rglob("handler.py")
    }

    assert handlers == folders


def test_every_handler_imports_from_its_bundle_alone(local: Assembly, runtime_packages: Path, tmp_path: Path) -> None:
    """B76: in a fresh interpreter with the bundle, boto3 and the function's own settings, and nothing else."""
    deployed = [(template, *found) for template in (local.engine, local.sandbox) for found in functions(template)]
    assert deployed
    for template, name, properties in deployed:
        path = [str(local.asset(template, properties))]
        if properties.get("Layers"):
            path.append(str(layer_of(local) / "python"))
        path.append(str(runtime_packages))
        variables = {
            key: template.text(value) for key, value in properties.get("Environment", {}).get("Variables", {}).items()
        }
        code = IMPORT_HANDLER.format(path=path, handler=properties["Handler"])

        done = subprocess.run(
            [sys.executable, "-I", "-S", "-B", "-c", code],
            cwd=tmp_path,
            env={**variables, "AWS_REGION": "eu-central-1", "AWS_DEFAULT_REGION": "eu-central-1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

        assert done.returncode == 0, f"{name}: {done.stderr[-1500:]}"


def test_settings_that_hold_json_are_json(local: Assembly) -> None:
    """A function reads its lists of machines and tools when it starts; a broken one would end every call."""
    for name, setting in (("deliver", "STATE_MACHINE_ARNS"), ("perform", "TOOL_FUNCTIONS")):
        variables = local.engine.function(name)["Environment"]["Variables"]
        assert json.loads(local.engine.text(variables[setting]))
