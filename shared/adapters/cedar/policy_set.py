"""A workflow's policies, parsed once and checked against the schema: usable, or broken with a reason."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from shared.domain.workflow import AttributeType, Workflow

if TYPE_CHECKING:
    import cedarpy

_HERE: Final = Path(__file__).parent
_TYPES: Final[Mapping[AttributeType, str]] = {int: "Long", str: "String", bool: "Bool"}


class BrokenPolicies(Exception):
    """The policies cannot be used; says what is wrong with them. Never evaluated, so nothing is allowed by them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySet:
    """Parsed policies of one workflow, its schema, and the names that the policies were given in their `@id`."""

    policies: "cedarpy.PolicySet"
    schema: "cedarpy.Schema"
    attributes: Mapping[str, AttributeType]
    names: Mapping[str, str]


def load_policies(workflow: Workflow) -> PolicySet:
    """Parse the core policies and the workflow's, and check them against the schema.

    Raises:
        BrokenPolicies: a file cannot be read or parsed, a policy speaks of something that the schema does not know, or
            a policy has no name of its own.
    """
    # Imported late: a function that never asks a question does not pay for the library.
    import cedarpy  # noqa: PLC0415

    try:
        text = "\n".join([(_HERE / "core.cedar").read_text(encoding="utf-8"), workflow.policies])
        schema = cedarpy.Schema.from_str(schema_text(workflow.attribute_types))
        policies = cedarpy.PolicySet.from_str(text)
        names = _names(json.loads(cedarpy.policies_to_json_str(text)))
        checked = cedarpy.validate_policies(text, schema)
    except (OSError, ValueError) as error:
        msg = f"the policies of {workflow.name} cannot be read: {error}"
        raise BrokenPolicies(msg) from error
    if not checked.validation_passed:
        faults = "; ".join(f"{names.get(e.policy_id, e.policy_id)}: {e.error}" for e in checked.errors)
        msg = f"the policies of {workflow.name} do not fit the schema: {faults}"
        raise BrokenPolicies(msg)
    return PolicySet(policies=policies, schema=schema, attributes=workflow.attribute_types, names=names)


def schema_text(attributes: Mapping[str, AttributeType]) -> str:
    """Return the schema with a workflow's attributes, all of them required.

    Raises:
        BrokenPolicies: an attribute has a type that Cedar does not know.
    """
    unknown = sorted(name for name, kind in attributes.items() if kind not in _TYPES)
    if unknown:
        msg = f"attributes of no known type: {', '.join(unknown)}"
        raise BrokenPolicies(msg)
    fields = ", ".join(f"{json.dumps(name)}: {_TYPES[kind]}" for name, kind in sorted(attributes.items()))
    return f"{(_HERE / 'schema.cedarschema').read_text(encoding='utf-8')}\ntype Attributes = {{ {fields} }};\n"


def _names(parsed: Mapping[str, Mapping[str, Mapping[str, object]]]) -> Mapping[str, str]:
    if parsed.get("templates"):
        msg = "templates are not used here; a policy with a slot permits nothing"
        raise ValueError(msg)
    names: dict[str, str] = {}
    for number, policy in parsed["staticPolicies"].items():
        annotations = policy.get("annotations")
        name = annotations.get("id") if isinstance(annotations, dict) else None
        if not name or name in names.values():
            msg = f"{number} needs an @id of its own"
            raise ValueError(msg)
        names[number] = name
    return names
