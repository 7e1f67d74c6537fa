"""Set-up of a developer's machine: standard library only, run before anything is installed.

`documentation` and what it draws with are run after set-up, and may import the product.
"""
