"""Task files in Python: classes over a data set, and lists of conversations."""
