"""Find, load and select from task files."""
