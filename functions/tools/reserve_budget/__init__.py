"""Set money of a budget aside."""
