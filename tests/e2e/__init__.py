"""Proofs with the product's own processes."""
