"""What several rooms of the plugin need."""
