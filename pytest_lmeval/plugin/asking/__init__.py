"""Items at their turn: fixtures, the adapter and the engine of one process."""
