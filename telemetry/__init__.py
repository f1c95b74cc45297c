"""What metrics, windows, states, workloads, inventory and events are, and where they are kept."""
