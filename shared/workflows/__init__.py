"""The workflows: one folder of data and pure rules each, found by `registry`."""
