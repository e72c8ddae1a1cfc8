"""A GPU machine over SSH as a target: one connection a host, one agent on the other side, faults by name.

asyncssh is imported only when a connection is opened: it costs a quarter of a second.
"""
