"""Phases, profiles, sizing, planner and reports: what Talla advises."""
