"""Tell a vendor about a payment."""
