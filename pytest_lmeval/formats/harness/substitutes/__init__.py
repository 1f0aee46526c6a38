"""What functions of task files import of packages that need not be installed: the few names that most of them use."""
