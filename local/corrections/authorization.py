"""Requests are authorised under the action and the resource that AWS authorises them under."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from local.corrections._seam import module, wrap
from local.corrections.task_states import MACHINE_OF_TOKEN

# Converse is an API, not an IAM action: AWS asks for the right to invoke the model.
_ACTIONS: Final[Mapping[str, str]] = {
    "bedrock:Converse": "bedrock:InvokeModel",
    "bedrock:ConverseStream": "bedrock:InvokeModelWithResponseStream",
}


def correct() -> None:
    """Name actions and resources as AWS does, and count loopback as a secure transport.

    The emulator serves plain HTTP on loopback; a bucket policy that demands TLS would deny everything, also the CDK.
    """
    actions, app = module("core.iam_actions"), module("app")
    wrap(actions, "extract_iam_action", _action)
    wrap(actions, "extract_resource_arn", _resource)
    wrap(app, "pin_request_origin", _origin)


def _action(original: Any, *args: Any, **kwargs: Any) -> Any:
    found = original(*args, **kwargs)
    return _ACTIONS.get(found, found)


def _resource(original: Any, service: str, method: str, path: str, headers: Any, body: bytes, *rest: Any) -> Any:
    """A task token belongs to the machine whose execution waits for it; the emulator takes it for nobody's."""
    found = original(service, method, path, headers, body, *rest)
    if service == "scheduler" and isinstance(found, str):
        return _in_its_group(found, body, rest[0] if rest else {})
    if service != "states":
        return found
    token = _field(body, "taskToken")
    return MACHINE_OF_TOKEN.get(token, found) if isinstance(token, str) else found


def _in_its_group(found: str, body: bytes, query: Mapping[str, Any]) -> str:
    """A schedule's ARN names its group; the emulator takes every schedule for one of the default group."""
    named = query.get("groupName") or _field(body, "GroupName")
    group = named[0] if isinstance(named, list) else named
    return found.replace(":schedule/default/", f":schedule/{group}/", 1) if isinstance(group, str) else found


def _field(body: bytes, name: str) -> Any:
    try:
        return json.loads(body or b"{}").get(name)
    except (ValueError, AttributeError):
        return None


def _origin(original: Any, source_ip: str, _secure_transport: bool) -> Any:  # noqa: FBT001 - the emulator's signature
    return original(source_ip, True)  # noqa: FBT003 - the emulator's signature
