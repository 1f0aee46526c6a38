"""Read and answer requests of applications' own clients, by interface."""
