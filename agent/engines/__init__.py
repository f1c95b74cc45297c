"""Inference engines' own metrics, found on loopback and read within bounds."""
