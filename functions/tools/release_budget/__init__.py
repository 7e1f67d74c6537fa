"""Give reserved budget back."""
