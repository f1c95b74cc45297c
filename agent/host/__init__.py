"""What /proc and /sys say."""
