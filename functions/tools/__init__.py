"""Tools: one folder and one function per outside operation, each with its own secret and its own host."""
