"""A secret in a template is referred to by its ARN, and its generated value has the alphabet that was asked for."""

from __future__ import annotations

import secrets
import string
from typing import Any

from local.corrections._seam import OutOfDate, module, wrap


def correct() -> None:
    """Let ``Ref`` answer the ARN, so that a grant on it is a grant on the secret, and honour every exclusion."""
    provisioners = module("services.cloudformation.provisioners")
    wrap(provisioners, "_sm_secret_string", _value)
    handlers = provisioners._RESOURCE_HANDLERS["AWS::SecretsManager::Secret"]
    create, update, delete = (handlers[name] for name in ("create", "update", "delete"))
    if not (callable(create) and callable(update) and callable(delete)):
        raise OutOfDate("secrets are created in another way")

    def created(*args: Any, **kwargs: Any) -> Any:
        _, attributes = create(*args, **kwargs)
        return attributes["Arn"], attributes

    def updated(arn: str, *args: Any, **kwargs: Any) -> Any:
        _, attributes = update(_name(arn), *args, **kwargs)
        return attributes["Arn"], attributes

    def deleted(arn: str, *args: Any, **kwargs: Any) -> Any:
        return delete(_name(arn), *args, **kwargs)

    handlers.update({"create": created, "update": updated, "delete": deleted})


def _name(arn: str) -> str:
    """The name under which the emulator keeps a secret; an ARN that it does not know is left as it is."""
    name, _ = module("services.secretsmanager")._resolve(arn)
    return name or arn


def _value(original: Any, properties: Any) -> Any:
    wanted = properties.get("GenerateSecretString")
    if not wanted or properties.get("SecretString") or wanted.get("SecretStringTemplate"):
        return original(properties)
    alphabets = {
        "ExcludeLowercase": string.ascii_lowercase,
        "ExcludeUppercase": string.ascii_uppercase,
        "ExcludeNumbers": string.digits,
        "ExcludePunctuation": string.punctuation,
    }
    allowed = "".join(each for excluded, each in alphabets.items() if str(wanted.get(excluded)).lower() != "true")
    alphabet = [character for character in allowed if character not in wanted.get("ExcludeCharacters", "")]
    return "".join(secrets.choice(alphabet) for _ in range(int(wanted.get("PasswordLength", 32))))
