"""The configuration: settings, reading, the commented default file."""
