"""The trigger's pure decisions."""
