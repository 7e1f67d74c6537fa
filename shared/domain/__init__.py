"""The rules of Holdfast: no clock, no network, no AWS. What is here can be read as the specification."""
