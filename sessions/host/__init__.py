"""The host: one process a workspace that runs its work, and the clients that ask and watch."""
