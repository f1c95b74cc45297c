"""NVIDIA's library: a child process that may hang or crash, and its client."""
