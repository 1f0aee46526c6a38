"""Convert other tools' files and published data sets to this package's files, and runs to other tools' files."""
