"""Objects: evidence, windows and residue, each read back in exactly the version that was referenced."""
