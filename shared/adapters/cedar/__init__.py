"""Policies in Cedar, evaluated in process."""
