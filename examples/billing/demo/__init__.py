"""A night of work on this machine, with a trigger and a worker that are killed in the middle of it: `make demo`."""
