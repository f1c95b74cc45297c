"""How well phases are told: on recordings of real runs, and on simulated servers."""
