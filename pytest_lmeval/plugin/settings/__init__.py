"""Settings of a run from the command line and the ini file."""
