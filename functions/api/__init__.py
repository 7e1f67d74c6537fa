"""What people reach over HTTP."""
