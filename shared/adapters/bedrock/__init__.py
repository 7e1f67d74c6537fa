"""Models on Bedrock."""
