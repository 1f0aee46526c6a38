"""Parse and answer requests from an application's clients, with separate modules for each interface."""
