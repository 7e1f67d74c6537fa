"""Everything the functions share: pure rules, ports, use cases, adapters, workflows and the runtime."""
