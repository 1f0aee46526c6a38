"""Parts of the metrics. Modules here declare no metric and may be imported late."""
