"""One folder per function: parse, wire, call one use case, render."""
