"""What several proofs share."""
