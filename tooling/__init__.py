"""Set-up of a developer's machine: standard library only, run before anything is installed."""
