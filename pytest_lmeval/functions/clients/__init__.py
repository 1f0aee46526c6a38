"""What the clients of applications ask at the endpoint, and how they are answered, by interface."""
