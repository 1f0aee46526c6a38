"""Parts of the metrics. The modules in this folder declare no metric and may be imported late."""
