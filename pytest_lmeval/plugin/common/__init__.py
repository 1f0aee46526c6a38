"""The baseline, the report of a worker and the hiding of secrets: several rooms of the plugin need them."""
