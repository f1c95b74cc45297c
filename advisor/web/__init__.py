"""The local page: what every GPU does now, and did in the last hours; read-only."""
