"""One use case per function: load what is stored, let the domain decide, commit, answer."""
