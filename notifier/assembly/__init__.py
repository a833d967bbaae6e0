"""Where the parts of a process are put together; the only room that knows all others."""
