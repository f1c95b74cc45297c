"""What the agent costs beside its peers: `make bench`."""
