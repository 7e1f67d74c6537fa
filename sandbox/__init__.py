"""A pretend provider of outside effects, deployed only on request, to try Holdfast against something that remembers.

It stands apart from the product: plain Python and boto3, its own table, its own secret, no import from anywhere else.
"""
