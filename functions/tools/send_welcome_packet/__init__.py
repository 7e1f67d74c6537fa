"""Post a welcome packet."""
