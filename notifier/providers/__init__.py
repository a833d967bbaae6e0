"""One file a provider, each with a sending and, where it can be asked, an asking object."""
