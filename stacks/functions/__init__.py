"""One construct per function: its settings, its limits and its exact grants, in one place."""
