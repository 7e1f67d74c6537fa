"""Order a desk's equipment."""
