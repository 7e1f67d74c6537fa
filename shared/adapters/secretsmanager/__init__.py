"""Secrets, read live."""
