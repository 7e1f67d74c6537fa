"""The real ``cdk bootstrap`` and ``cdk deploy``, unmodified, against a local AWS."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from local.aws import ACCOUNT, REGION, LocalAws
from local.commands import Command
from local.environment import isolated, plain_environment
from local.places import NODE_BIN, ROOT, Place, installed
from local.problems import LocalProblem

STAGE: Final = "local"
CONTEXT: Final[Mapping[str, str]] = {"stage": STAGE, "target": "host", "sandbox": "true"}

# Each takes well under a minute here; a command that takes ten has hung.
_COMMAND_SECONDS_MAX: Final = 600.0

Outputs = Mapping[str, Mapping[str, str]]


def begin_synth(place: Place, *, app: Path = ROOT, context: Mapping[str, str] = CONTEXT) -> Command:
    """Start to write the templates of an app, which needs no running AWS.

    Args:
        app: the folder of the app's ``cdk.json``.
    """
    words = [word for name, value in context.items() for word in ("--context", f"{name}={value}")]
    assembly = _assembly(place)
    shutil.rmtree(assembly, ignore_errors=True)
    return _begin(place, None, ["synth", "--quiet", "--output", str(assembly), *words], folder=app)


def bootstrap(place: Place, aws: LocalAws) -> None:
    """Prepare the account for deployments, as one does once per account and region on AWS.

    Raises:
        LocalProblem: the command failed.
    """
    # The state folder holds no cdk.json, so that nothing is synthesised for this.
    command = _begin(place, aws, ["bootstrap", f"aws://{ACCOUNT}/{REGION}"], folder=place.folder)
    command.wait(seconds_max=_COMMAND_SECONDS_MAX)


def deploy(place: Place, aws: LocalAws, synth: Command) -> Outputs:
    """Deploy every stack that a synth writes.

    Returns:
        The outputs of each stack by stack name; also kept at ``place.outputs``.

    Raises:
        LocalProblem: the synth or the deployment failed.
    """
    synth.wait(seconds_max=_COMMAND_SECONDS_MAX)
    place.outputs.unlink(missing_ok=True)
    words = ["deploy", "--all", "--require-approval", "never", "--app", str(_assembly(place))]
    kept = ["--outputs-file", str(place.outputs), "--progress", "events"]
    _begin(place, aws, [*words, *kept], folder=place.folder).wait(seconds_max=_COMMAND_SECONDS_MAX)
    return read_outputs(place)


def read_outputs(place: Place) -> Outputs:
    """The outputs of the last complete deployment.

    Raises:
        LocalProblem: there was none.
    """
    try:
        outputs: Outputs = json.loads(place.outputs.read_text())
    except (OSError, ValueError) as error:
        raise LocalProblem(f"Nothing is deployed in {place.folder}.", "Run `make up`.") from error
    return outputs


def output(outputs: Outputs, stack: str, key: str) -> str:
    """One output of the stack whose name ends in ``-<stack>``, such as ``Engine``.

    Raises:
        LocalProblem: the stack or the output is not there.
    """
    for name, values in outputs.items():
        if name.endswith(f"-{stack}") and key in values:
            return values[key]
    known = ", ".join(f"{name}.{each}" for name, values in outputs.items() for each in values)
    raise LocalProblem(f"The deployment has no output {key} of a stack {stack}.", f"It has: {known or 'none'}.")


def _assembly(place: Place) -> Path:
    return place.folder / "cdk.out"


def _begin(place: Place, aws: LocalAws | None, words: list[str], *, folder: Path) -> Command:
    cdk = str(installed(NODE_BIN / "cdk"))
    silence = {"CDK_DISABLE_CLI_TELEMETRY": "true", "JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION": "true"}
    environment = {**plain_environment(), **isolated(), **(aws.environment if aws else {}), **silence}
    return Command.start(
        f"`cdk {words[0]}`",
        [cdk, *words, "--no-notices", "--no-color", "--ci"],
        folder=folder,
        environment=environment,
        log=place.log(words[0]),
    )
