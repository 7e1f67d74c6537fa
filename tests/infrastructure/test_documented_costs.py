"""What the README says about leaving a deployment idle, compared with what is deployed."""

import re
from pathlib import Path

from tests.infrastructure.synthesis import synthesise

README = Path(__file__).resolve().parents[2] / "README.md"
# USD a month, list prices.
ALARM = 0.10
KEY = 1.00


def test_the_idle_costs_count_what_is_deployed() -> None:
    """The alarms and keys of the table are as many as the templates have, and its sum is their sum."""
    assembly, text = synthesise("dev"), README.read_text(encoding="utf-8")
    alarms = len(list(assembly.engine.of_type("AWS::CloudWatch::Alarm")))
    keys = len(list(assembly.data.of_type("AWS::KMS::Key")))
    [secrets] = re.findall(r"in Secrets Manager \|.*\| ([\d.]+) \|", text)

    assert re.findall(r"\| ([\d.]+) for (\d+) \|", text) == [(f"{alarms * ALARM:.2f}", str(alarms))]
    assert f"{keys} x {KEY:.2f}" in text
    assert f"That is {alarms * ALARM + keys * KEY + float(secrets):.2f} a month" in text
