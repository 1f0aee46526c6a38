"""Items of task files: made, planned with the adapter and the engine of one process, and run at their turn."""
