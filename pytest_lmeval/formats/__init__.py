"""Load task files: one module per format, each of which returns the ``Task`` objects of a file."""
