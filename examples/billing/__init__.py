"""An example: the nightly work of a company that bills its accounts; the demo, compose and end-to-end tests run it."""
