"""Parts of the metrics. The modules in this folder declare no metrics and may be imported late."""
