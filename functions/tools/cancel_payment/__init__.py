"""Take a payment back."""
