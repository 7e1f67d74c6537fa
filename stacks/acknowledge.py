"""One way to say that a security finding is known and why it stands."""

from typing import Any

from aws_cdk import Acknowledgment, Stack, Validations
from constructs import IConstruct


def acknowledge(finding: str, *, on: IConstruct, because: str) -> None:
    """Accept one cdk-nag finding on one construct and everything below it.

    Args:
        finding: full id, with the part in brackets where the rule reports one finding per action or resource.
        on: the narrowest construct that carries the finding.
        because: a sentence for the auditor.
    """
    Validations.of(on).acknowledge(Acknowledgment(id=finding, reason=because))


def acknowledge_wildcard(resource: str, *, on: IConstruct, because: str) -> None:
    """Accept one IAM resource that ends in, or is, a wildcard.

    Args:
        resource: the resource exactly as the policy names it, tokens included.
        on: the construct whose policy names it.
        because: why nothing narrower would do.
    """
    written = _as_reported(Stack.of(on).resolve(resource))
    acknowledge(f"AwsSolutions-IAM5[Resource::{written}]", on=on, because=because)


def _as_reported(resolved: Any) -> str:  # noqa: ANN401 - a resolved token is any part of a template
    """Write a resolved value the way the rule reports it: references in pointed brackets, joins joined."""
    match resolved:
        case str():
            return resolved
        case {"Ref": str(name)}:
            return f"<{name}>"
        case {"Fn::GetAtt": [str(name), str(attribute)]}:
            return f"<{name}.{attribute}>"
        case {"Fn::Join": [str(separator), list(parts)]}:
            return separator.join(_as_reported(part) for part in parts)
    message = f"cannot tell how the rule reports {resolved!r}"
    raise ValueError(message)
