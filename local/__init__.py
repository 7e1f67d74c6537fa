"""The embedded default: the real deployment on a local AWS, on loopback, with IAM enforced."""
