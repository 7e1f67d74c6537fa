"""The stored form of a checkpoint: canonical JSON that says nothing twice, so that a version fits two kilobytes.

Two rules, which belong to schema version 1. What is left out is read back as it was.

- A field at its default is left out.
- A field is left out when the rest of the record tells its value, as `_told` lists. An approval's own digest, which
  covers the told parts of it, is always written.

Both rules, every default, `operation_key` and `evidence_digest` are part of the schema: whoever changes one of them so
that stored bodies would be read differently raises the schema version. `tests/unit/domain/test_stored_form.py` keeps
stored bodies to see to it.
"""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final, TypeAlias

from shared.domain.canonical import Json, canonical
from shared.domain.evidence import EvidenceRef, evidence_digest
from shared.domain.identity import TaskKey, operation_key
from shared.domain.instants import format_instant, parse_instant

# A part of a body, and the values that the rest of the body tells of it. Only required fields are told: whether an
# optional one is at its default or as told could not be read back.
Told: TypeAlias = tuple[dict[str, Any], dict[str, Any]]

_NOT_A_BODY: Final = (AttributeError, KeyError, OverflowError, RecursionError, TypeError)


def shorten(body: dict[str, Json]) -> bytes:
    """Return the stored bytes of a body whose defaults are left out already."""
    # All that is told is noted before anything goes.
    told = [(part, name, _as_text(value)) for part, values in _told(body) for name, value in values.items()]
    for part, name, value in told:
        if _as_text(part[name]) == value:
            del part[name]
    return canonical(body)


def restore(body: str) -> str:
    """Return a stored body with everything written that the rest of it tells. Defaults are for the reader to fill in.

    Raises:
        ValueError: it is no stored body.
    """
    try:
        whole = json.loads(body)
        for part, values in _told(whole):
            for name, value in values.items():
                part.setdefault(name, value)
        return json.dumps(whole)
    except _NOT_A_BODY as error:
        msg = "not the body of a checkpoint"
        raise ValueError(msg) from error


def _told(body: dict[str, Any]) -> Iterator[Told]:
    """List what the rest of a body tells. While a body is restored, what comes first is there for what comes after."""
    business, execution, security = body["business"], body["execution"], body["security"]
    approvals = security.get("approvals", ())
    version, asked = {"request_version": business["request_version"]}, {"arguments": business["request"]}
    yield body, {"created_at": body["updated_at"], "status_since": body["updated_at"]}
    for principal in _principals(body):
        yield principal, {"issuer": business["owner"]["issuer"]}
    for wait in execution.get("waits", ()):
        yield wait, version
    in_force = version | _in_force(body) if approvals else {}
    for approval in approvals:
        yield approval["basis"], in_force
        yield approval["spec"], asked
        yield approval, {"expires_at": _expiry(approval)}
    approved = {approval["approval_id"]: approval["spec"] for approval in approvals}
    key = TaskKey(tenant=security["tenant"], task_id=body["task_id"])
    for action in execution.get("actions", ()):
        spec = approved.get(action.get("approval_id"))
        yield action, version if spec is None else version | {"spec": spec}
        yield action["spec"], asked
        yield action, {"operation": _operation(key, action)}


def _in_force(body: dict[str, Any]) -> dict[str, str]:
    """Return what an approval that is asked for now would rest on."""
    refs = [EvidenceRef(**ref) for ref in body.get("references", {}).get("evidence", ())]
    stamps = body["stamps"]
    return {"policy": stamps["policy"], "catalogue": stamps["catalogue"], "evidence": evidence_digest(refs)}


def _principals(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """List everybody whom a body names beside the owner."""
    cancel, on_behalf_of = body["execution"].get("cancel"), body["security"].get("on_behalf_of")
    if cancel is not None:
        yield cancel["principal"]
    if on_behalf_of is not None:
        yield on_behalf_of
    for approval in body["security"].get("approvals", ()):
        for decision in approval.get("decisions", ()):
            yield decision["principal"]


def _expiry(approval: dict[str, Any]) -> str:
    valid_for = timedelta(seconds=approval["rule"]["valid_for_seconds"])
    return format_instant(parse_instant(approval["requested_at"]) + valid_for)


def _operation(key: TaskKey, action: dict[str, Any]) -> str:
    return operation_key(
        key, request_version=action["request_version"], ordinal=action["ordinal"], tool=action["spec"]["tool"]
    )


def _as_text(value: Json) -> str:
    # Compared as text: `1 == True` in Python, and not in a digest.
    return json.dumps(value, sort_keys=True)
