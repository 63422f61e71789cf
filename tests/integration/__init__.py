"""Proofs against a real PostgreSQL and a real RabbitMQ."""
