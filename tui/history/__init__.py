"""The history on the screen: every trial that ended, as a table read from the store as it is shown."""
