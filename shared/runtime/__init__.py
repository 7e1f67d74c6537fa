"""Settings, wiring and observability: the only place that knows which adapter stands behind a port."""
