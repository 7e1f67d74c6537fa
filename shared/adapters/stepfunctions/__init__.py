"""Executions on Step Functions."""
