"""The way to InfluxDB: a durable cursor, batches, and what the server answered."""
