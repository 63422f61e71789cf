"""Proofs that need no server."""
