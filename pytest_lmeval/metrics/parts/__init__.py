"""What the metrics are made of. A module here declares no metric, and may be imported late."""
