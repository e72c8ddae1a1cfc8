"""What each part of the screen says: pure functions from what is known to lines."""
