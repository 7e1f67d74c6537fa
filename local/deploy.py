"""The real ``cdk bootstrap`` and ``cdk deploy``, unmodified, against a local AWS."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from local.aws import ACCOUNT, REGION, LocalAws
from local.emulator import plain_environment
from local.places import NODE_BIN, ROOT, Place, installed
from local.problems import LocalProblem

STAGE: Final = "local"
CONTEXT: Final[Mapping[str, str]] = {"stage": STAGE, "target": "host", "sandbox": "true"}

# Each takes well under a minute here; a command that takes ten has hung.
_COMMAND_SECONDS_MAX: Final = 600

Outputs = Mapping[str, Mapping[str, str]]


def deploy(place: Place, aws: LocalAws, *, app: Path = ROOT, context: Mapping[str, str] = CONTEXT) -> Outputs:
    """Bootstrap the account and deploy every stack of an app.

    Args:
        app: the folder of the app's ``cdk.json``.

    Returns:
        The outputs of each stack by stack name; also kept at ``place.outputs``.

    Raises:
        LocalProblem: one of the commands failed; its last words are in the message and all of them in the place's log.
    """
    words = [word for name, value in context.items() for word in ("--context", f"{name}={value}")]
    assembly = place.folder / "cdk.out"
    _cdk(place, aws, ["synth", "--all", "--quiet", "--output", str(assembly), *words], folder=app, log="synth")
    # In the state folder there is no cdk.json, so that nothing is synthesised a second time.
    _cdk(place, aws, ["bootstrap", f"aws://{ACCOUNT}/{REGION}"], folder=place.folder, log="bootstrap")
    place.outputs.unlink(missing_ok=True)
    deployment = ["deploy", "--all", "--require-approval", "never", "--app", str(assembly)]
    kept = ["--outputs-file", str(place.outputs), "--progress", "events"]
    _cdk(place, aws, [*deployment, *kept], folder=place.folder, log="deploy")
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


def output(outputs: Outputs, suffix: str, key: str) -> str:
    """One output of the stack whose name ends in ``-<suffix>``.

    Raises:
        LocalProblem: the stack or the output is not there.
    """
    for stack, values in outputs.items():
        if stack.endswith(f"-{suffix}") and key in values:
            return values[key]
    known = ", ".join(f"{stack}.{name}" for stack, values in outputs.items() for name in values)
    raise LocalProblem(f"The deployment has no output {key} of a stack {suffix}.", f"It has: {known or 'none'}.")


def _cdk(place: Place, aws: LocalAws, words: Sequence[str], *, folder: Path, log: str) -> None:
    command = [str(installed(NODE_BIN / "cdk")), *words, "--no-notices", "--no-color", "--ci"]
    silence = {"CDK_DISABLE_CLI_TELEMETRY": "true", "JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION": "true"}
    path = place.log(log)
    with path.open("wb") as file:
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env={**plain_environment(), **aws.environment, **silence},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                timeout=_COMMAND_SECONDS_MAX,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise LocalProblem(f"`cdk {words[0]}` did not end in {_COMMAND_SECONDS_MAX} s.", f"See {path}.") from error
    if done.returncode != 0:
        last = "\n".join(f"  {line}" for line in path.read_text(errors="replace").splitlines()[-20:])
        raise LocalProblem(f"`cdk {words[0]}` failed with code {done.returncode}.", f"The end of {path}:\n{last}")
