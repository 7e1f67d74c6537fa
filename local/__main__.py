"""Commands for the local AWS: ``python -m local up | down | status | token | demo``."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Callable, Mapping
from typing import Final

from local import instance, model
from local.instance import Instance
from local.people import PEOPLE
from local.places import VENV_BIN, Place, every_place
from local.problems import LocalProblem
from local.servers import servers_in

# What a shell reports for a program that Ctrl-C ended.
INTERRUPTED: Final = 130

UP: Final = Place(name="up")
DEMO: Final = Place(name="demo")


def main() -> int:
    """Run one command and answer its exit code."""
    options = _parser().parse_args()
    commands: Mapping[str, Callable[[argparse.Namespace], int]] = {
        "up": _up,
        "down": _down,
        "status": _status,
        "token": _token,
        "demo": _demo,
    }
    # A request to end is taken like Ctrl-C, so that it too ends everything that was started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return commands[options.command](options)
    except LocalProblem as problem:
        print(f"\n{problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted; what was started has been ended.", file=sys.stderr)
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m local", description="Holdfast on a local AWS.")
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="start the local AWS, deploy, seed, and leave it running")
    up.add_argument("--port", type=int, help="loopback port of the local AWS (a free one by default)")
    down = commands.add_parser("down", help="end the local AWS")
    down.add_argument("--all", action="store_true", help="also what demos and test runs left running in this checkout")
    commands.add_parser("status", help="say whether the local AWS runs and how to reach it")
    token = commands.add_parser("token", help="log somebody in and print the access token")
    token.add_argument("person", choices=list(PEOPLE))
    demo = commands.add_parser("demo", help="walk through a refund on a local AWS of its own, and end it")
    demo.add_argument("--port", type=int, help="loopback port of the local AWS (a free one by default)")
    return parser


def _up(options: argparse.Namespace) -> int:
    found = instance.attach(UP)
    if found is None:
        found = instance.start(UP, port=options.port, tell=_told())
    else:
        print("The local AWS is up already.")
    _explain(found)
    return 0


def _down(options: argparse.Namespace) -> int:
    ended = instance.end(UP)
    if options.all:
        for place in every_place():
            with place.held():
                for server in servers_in(place):
                    ended = server.stop() or ended
    print("The local AWS has ended; all that it held is gone." if ended else "No local AWS was up.")
    return 0


def _status(_options: argparse.Namespace) -> int:
    found = instance.attach(UP)
    if found is None:
        print("No local AWS is up. Start one with `make up`.")
        return 1
    _explain(found)
    return 0


def _token(options: argparse.Namespace) -> int:
    print(instance.require_running(UP).token(options.person))
    return 0


def _demo(options: argparse.Namespace) -> int:
    from local.walkthrough import run  # noqa: PLC0415 - the other commands do without it

    model.require_own()
    with instance.running(DEMO.name, port=options.port, tell=_told()) as deployed:
        return run(deployed)


def _told() -> Callable[[str], None]:
    begun_at = time.monotonic()

    def tell(words: str) -> None:
        print(f"[{time.monotonic() - begun_at:5.1f} s] {words}", flush=True)

    return tell


def _explain(up: Instance) -> None:
    """Print how to reach what runs, as whom, and something to try."""
    python = VENV_BIN.relative_to(VENV_BIN.parent.parent) / "python"
    print(f"\nHoldfast's API   {up.api_address}")
    print(
        f"The local AWS    {up.aws.endpoint} (region us-east-1, key and secret `test`; log: {up.place.log('emulator')})"
    )
    print("\nWho can log in:")
    for person in PEOPLE.values():
        print(f"  {person.name:<11} {person.tenant:<7} may {person.may}")
    print(f"""
Log in and try:
  API={up.api_address}
  TOKEN=$({python} -m local token clerk-1)
  curl -s -H "authorization: Bearer $TOKEN" "$API/tasks?status=waiting_approval"
  curl -s "$API/openapi.json"

End it with `make down`.""")


if __name__ == "__main__":
    sys.exit(main())
