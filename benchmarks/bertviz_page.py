"""BertViz's own page of given patterns, made in BertViz's environment: `bertviz_page.py head|model in.npz out.html`."""

import sys
import time
from pathlib import Path

import numpy as np
import torch
from bertviz import head_view, model_view

view, source, target = sys.argv[1:]
patterns_file = np.load(source)
# Of each layer [batch, head, query, key]
attention = [torch.from_numpy(layer)[None] for layer in patterns_file["patterns"]]
tokens = [str(token) for token in patterns_file["tokens"]]
begun = time.perf_counter()
draw = {"head": head_view, "model": model_view}[view]
html = draw(attention, tokens, html_action="return").data
Path(target).write_text(f'<!doctype html><meta charset="utf-8">{html}', encoding="utf-8")
print(f"{time.perf_counter() - begun:.2f}")
