"""Where trials run: the trial interface, and the local machine as a target."""
