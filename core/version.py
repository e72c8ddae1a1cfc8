"""The version of this Kerneldeck: host and clients must be of the same."""

VERSION = "0.1.0"
