"""A model of the protocol: the product's own steps and SQL, interleaved by a seed, and crashed between any two."""
