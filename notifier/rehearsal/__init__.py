"""What the product would do with one notice, on a virtual clock and with scripted surroundings."""
