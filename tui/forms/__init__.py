"""Forms: what to ask of an operation, checked where it is typed; each ends with what was chosen, or None."""
