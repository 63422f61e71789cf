"""The contracts: states, rows, messages, reports and migrations, without any input or output."""
