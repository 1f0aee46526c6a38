"""Convert the files of other tools and published data sets to files of this package, and its runs to theirs."""
