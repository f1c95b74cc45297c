"""Grafana dashboards, made from one description; see dashboards/README.md."""
