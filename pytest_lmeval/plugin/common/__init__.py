"""Helpers of several rooms of the plugin: the baseline, reports of workers, hiding of secrets."""
