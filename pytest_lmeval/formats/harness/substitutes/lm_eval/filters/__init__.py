"""A part of ``lm_eval``."""
