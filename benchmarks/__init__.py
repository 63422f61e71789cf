"""Measurements beside a peer, on the same servers, in one run: `python -m benchmarks`."""
