"""Use cases: published questions about attention, each with its baseline, interval and corrected p-value."""
