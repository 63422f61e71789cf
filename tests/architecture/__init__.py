"""Proofs about the source text itself."""
