"""What differs where pytest-xdist runs: who gets which batch, and what workers send."""
