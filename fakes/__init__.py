"""Stand-ins and small real programs for tests and benchmarks: servers, models, sandboxes, GGUF files."""
