"""What telemetry alone tells of a GPU's work: simulated windows, and what is fitted to them."""
