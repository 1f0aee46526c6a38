"""Read data files and the splits of data sets."""
