"""A workspace: the folder of a user, described by its kerneldeck.toml."""
