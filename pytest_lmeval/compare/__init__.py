"""Compare the boards of runs, and decide whether a run passes."""
