"""What the command line and the ini file ask for."""
