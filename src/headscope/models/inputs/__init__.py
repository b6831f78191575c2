"""Inputs: from text, images and sound to what a model takes, and tokens as people read them."""
