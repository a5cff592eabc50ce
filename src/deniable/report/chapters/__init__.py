"""The chapters of a report: one file for each kind of result."""
