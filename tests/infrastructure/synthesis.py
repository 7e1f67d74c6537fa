"""Synthesise a stage once per session, and read the result the way a reviewer speaks of it."""

import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

# jsii runs the first `node` of the path: the one that was installed with everything else.
os.environ["PATH"] = f"{Path(sys.prefix) / 'bin'}{os.pathsep}{os.environ['PATH']}"

from aws_cdk import App

from app import build

ROOT = Path(__file__).resolve().parents[2]

Resource = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """One stack as CloudFormation will read it."""

    part: str
    body: dict[str, Any]

    @property
    def resources(self) -> Mapping[str, Resource]:
        """Every resource by its logical id."""
        resources: Mapping[str, Resource] = self.body["Resources"]
        return resources

    def of_type(self, kind: str) -> Iterator[tuple[str, Resource]]:
        """Every resource of one type, with its logical id."""
        return ((name, found) for name, found in self.resources.items() if found["Type"] == kind)

    def properties(self, kind: str, **wanted: object) -> dict[str, Any]:
        """The properties of the only resource of a type that has these values."""
        found = [
            resource["Properties"]
            for _, resource in self.of_type(kind)
            if all(resource["Properties"].get(name) == value for name, value in wanted.items())
        ]
        assert len(found) == 1, f"{len(found)} resources of type {kind} with {wanted}"
        properties: dict[str, Any] = found[0]
        return properties

    def function(self, name: str) -> dict[str, Any]:
        """The properties of one function by the end of its name."""
        [found] = [
            resource["Properties"]
            for _, resource in self.of_type("AWS::Lambda::Function")
            if re.fullmatch(rf"holdfast-[a-z]+-{re.escape(name)}", resource["Properties"].get("FunctionName", ""))
        ]
        properties: dict[str, Any] = found
        return properties

    def text(self, value: object) -> str:
        """Write a value as one string: references in pointed brackets, SSM parameters by their path."""
        match value:
            case str():
                return value
            case {"Ref": str(name)}:
                default = self.body.get("Parameters", {}).get(name, {}).get("Default")
                return f"<{default or name}>"
            case {"Fn::GetAtt": [str(name), str(attribute)]}:
                return f"<{name}.{attribute}>"
            case {"Fn::Join": [str(separator), list(parts)]}:
                return separator.join(self.text(part) for part in parts)
        raise AssertionError(f"unexpected expression in a template: {value!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """What `cdk synth` writes for one stage."""

    app: App
    # The folder goes when the session does.
    holder: "tempfile.TemporaryDirectory[str]"
    directory: Path
    templates: Mapping[str, Template]

    @property
    def data(self) -> Template:
        """The data stack."""
        return self.templates["Data"]

    @property
    def engine(self) -> Template:
        """The engine stack."""
        return self.templates["Engine"]

    @property
    def sandbox(self) -> Template:
        """The sandbox stack."""
        return self.templates["Sandbox"]

    def asset(self, template: Template, properties: Mapping[str, Any]) -> Path:
        """Folder that will be uploaded as the code of a function or layer."""
        key = (properties.get("Code") or properties["Content"])["S3Key"].removesuffix(".zip")
        return self.directory / f"asset.{key}"


def context(**overrides: object) -> dict[str, object]:
    """The context of cdk.json with some values replaced, as the command line does it."""
    defaults: dict[str, object] = json.loads((ROOT / "cdk.json").read_text())["context"]
    return {**defaults, **overrides}


@cache
def synthesise(stage: str, **overrides: object) -> Assembly:
    """Synthesise one stage in this process; the same question is answered once per session."""
    holder = tempfile.TemporaryDirectory(prefix=f"holdfast-{stage}-")
    directory = Path(holder.name)
    app = App(context=context(stage=stage, **overrides), outdir=str(directory))
    build(app)
    app.synth()
    templates = {}
    for path in directory.glob("*.template.json"):
        part = path.name.removesuffix(".template.json").rsplit("-", 1)[-1]
        templates[part] = Template(part=part, body=json.loads(path.read_text()))
    return Assembly(app=app, holder=holder, directory=directory, templates=templates)
