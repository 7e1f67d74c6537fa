"""The variables that programs here are started with: nothing of the person's AWS accounts is among them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from local.places import program_path

# What a program needs of the person's own environment.
_INHERITED: Final = (
    *("HOME", "LANG", "LC_ALL", "TERM", "TZ", "USER"),
    *("NODE_EXTRA_CA_CERTS", "SSL_CERT_DIR", "SSL_CERT_FILE"),
)


def plain_environment() -> dict[str, str]:
    """The person's environment without anything that names an AWS account, a profile or a region."""
    kept = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return {**kept, "PATH": program_path()}


def isolated() -> Mapping[str, str]:
    """Variables that keep profiles, credentials and the instance metadata of the machine out of sight."""
    return {
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
    }
