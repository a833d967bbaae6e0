"""Stand-ins that speak the real protocols over sockets; used by `make run` and the tests."""
