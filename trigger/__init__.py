"""The process that plans, claims, fans out and publishes occurrences."""
