"""The check-up: a line each, what is there, what is missing, what to do."""
