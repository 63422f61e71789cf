"""What the demo, the benchmarks and the tests run: example jobs, and the servers they need."""
