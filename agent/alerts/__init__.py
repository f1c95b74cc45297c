"""Alert rules: the rulebook, the alarms it raises, their words."""
