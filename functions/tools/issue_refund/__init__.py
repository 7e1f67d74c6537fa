"""Refund an order through the payments provider."""
