"""The state of record: store, checkpoints, journal, recovery, and the handlers of the operations."""
