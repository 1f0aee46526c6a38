"""Find and load task files, and select examples from them."""
