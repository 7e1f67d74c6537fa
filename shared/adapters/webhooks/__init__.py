"""What outside systems send to us, signed."""
