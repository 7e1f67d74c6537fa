"""Goods returns: a refund of its own once the goods are back."""
