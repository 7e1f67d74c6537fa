"""Business events on EventBridge."""
