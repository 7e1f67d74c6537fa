"""Vendor payments: an invoice paid once, to the account of the vendor master, with two people's approval."""
