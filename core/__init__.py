"""The engine: workspace, space, search, measure, targets, sweep and the declared operations."""
