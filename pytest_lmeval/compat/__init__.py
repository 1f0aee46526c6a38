"""What task files written for other frameworks import, a package for each."""
