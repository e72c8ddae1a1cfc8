"""The operations carried out: one module an operation, bound to its id in `sessions.binding`."""
