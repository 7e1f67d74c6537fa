"""Pay a vendor."""
