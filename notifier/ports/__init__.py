"""What the flows need from the outside world, as protocols."""
