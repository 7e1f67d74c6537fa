"""Refunds: money back to a customer, above a limit only with a manager's approval."""
