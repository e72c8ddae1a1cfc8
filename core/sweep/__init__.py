"""The sweep: a pure state machine and the executor that carries its instructions out."""
