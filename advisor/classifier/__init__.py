"""What telemetry alone tells of a GPU's work: simulated windows, and the classifier fitted to them."""
