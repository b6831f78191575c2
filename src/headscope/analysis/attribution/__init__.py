"""Attribution: what an output depends on: relevance, importance, the effect of edits."""
