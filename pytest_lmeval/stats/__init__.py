"""Statistics: intervals, the paired test, power."""
