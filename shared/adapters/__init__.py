"""The ports on AWS, one package per service."""
