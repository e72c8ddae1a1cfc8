"""The operations: each declared once, for the command line, the screens and the agents alike."""
