"""Seals by the key service."""
