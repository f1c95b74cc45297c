"""Logs that people already have become history: nvidia-smi's CSV, DCGM columns, Talla's own CSV."""
