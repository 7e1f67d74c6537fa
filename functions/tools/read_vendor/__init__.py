"""Read a vendor from the vendor master."""
