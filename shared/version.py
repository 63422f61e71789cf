"""The release that this code is."""

VERSION = "0.1.0"
