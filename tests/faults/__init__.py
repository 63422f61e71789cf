"""Proofs of what holds when processes, connections and servers fail."""
