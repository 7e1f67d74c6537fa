"""Outside systems that are spoken to over HTTP."""
