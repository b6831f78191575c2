"""Structure: trees, rollout and flow, similarity, alignment and probes."""
