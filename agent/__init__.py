"""The agent: samples a GPU server, keeps windows in the store, ships them."""
