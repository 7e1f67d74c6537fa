"""``python -m benchmarks``: measure, print, and keep the figures in ``benchmarks/latest.json``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.growth import measure_growth
from benchmarks.meter import as_json
from benchmarks.refund import measure_refund
from benchmarks.weight import measure_bundle, measure_imports
from local.dynamodb_local import running
from shared.runtime.observability import logger
from tests.contract.tables import create_tables

LATEST: Final = Path(__file__).parent / "latest.json"
TURNS: Final = (10, 100, 1_000, 5_000)
AIMS: Final[Mapping[str, float]] = {"store_calls": 30, "write_units": 48, "state_transitions": 12}


def main() -> int:
    """Run the measurements."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--turns", type=int, nargs="+", default=[10, 100, 1_000, 5_000], help="lengths of the long task"
    )
    options = parser.parse_args()
    # Thousands of steps are played; what each of them logs is for an operator.
    logger.setLevel("WARNING")
    with running("bench") as database:
        client = database.client()
        create_tables(client)
        refund = measure_refund(client, database.client())
        _print("One approved refund, counted from the real calls", refund)
        growth = measure_growth(database.client(), database.client(), turns=options.turns)
    _print_growth(growth)
    imports = measure_imports()
    _print("Importing and wiring each function", imports)
    bundle = measure_bundle()
    _print("What is deployed for the cloud, unzipped, without boto3", bundle)
    LATEST.write_text(as_json({"refund": refund, "growth": growth, "imports": imports, "bundle": bundle}))
    print(f"\nKept in {LATEST.relative_to(Path.cwd()) if LATEST.is_relative_to(Path.cwd()) else LATEST}.")
    return 0


def _print(title: str, figures: Mapping[str, Any]) -> None:
    print(f"\n{title}")
    for name, value in figures.items():
        aim = f"   (aim: at most {AIMS[name]:g})" if name in AIMS else ""
        if isinstance(value, dict):
            print(f"  {name.replace('_', ' ')}:")
            for key, part in value.items():
                print(f"    {key:<24} {part}")
        else:
            print(f"  {name.replace('_', ' '):<28} {value}{aim}")


def _print_growth(growth: list[dict[str, Any]]) -> None:
    print("\nA task of N model turns with 2 KB of outside words each: its Nth turn, and one resume at N")
    columns = list(growth[0])
    print("  " + "".join(f"{name.replace('_', ' '):>20}" for name in columns))
    for row in growth:
        print("  " + "".join(f"{row[name]:>20}" for name in columns))


if __name__ == "__main__":
    sys.exit(main())
