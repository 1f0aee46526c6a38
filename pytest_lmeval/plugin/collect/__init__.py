"""Task files as pytest modules, and what a process collected."""
