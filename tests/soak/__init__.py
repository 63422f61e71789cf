"""The soak: random faults, reproducible by their seed, against real processes on private servers; a checker judges."""
