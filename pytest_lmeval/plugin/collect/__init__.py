"""Task files: found, loaded, and selected from."""
