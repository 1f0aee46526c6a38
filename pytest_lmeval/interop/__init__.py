"""Convert files of other tools and published data sets to files of this package, and runs to files of other tools."""
