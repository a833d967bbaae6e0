"""Where the reset link and the destination come from at send time."""
