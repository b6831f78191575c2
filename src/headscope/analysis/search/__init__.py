"""Search: heads that do what an example or a pattern shows, and the strongest examples of a head."""
