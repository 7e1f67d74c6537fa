"""Tools behind Lambda functions."""
