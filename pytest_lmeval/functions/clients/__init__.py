"""Parse and answer requests from applications' own clients, by interface."""
