"""Measures: what heads do, each counted over traces and over a corpus alike."""
