"""The process that executes and settles the accounts of an occurrence."""
