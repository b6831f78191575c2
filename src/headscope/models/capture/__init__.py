"""Capture: the attention function, sessions, the pass, the probe and the recorder."""
