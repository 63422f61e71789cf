"""Real servers for the demo, the tests and the benchmarks: one PostgreSQL and one RabbitMQ.

`find` decides where they come from: an address in the environment, a Docker engine, or private instances of the
programs on this machine. `python -m examples.servers` starts both and prints their addresses.
"""
