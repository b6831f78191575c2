/** A small trace for tests. */

import type { SiteProps, StackProps, TraceProps } from "../contract";

export function stack(name: string, texts: string[], more: Partial<StackProps> = {}): StackProps {
  return {
    name,
    kind: "text",
    grid: null,
    texts,
    ids: texts.map(() => null),
    special: [],
    words: texts.map((_, index) => index),
    sentences: texts.map(() => 0),
    segments: texts.map(() => "A"),
    spaces: [],
    looks: "",
    boxes: [],
    replaced: [],
    answer: null,
    ...more,
  };
}

export function layer(site: string, n: number, more: Partial<SiteProps> = {}): SiteProps {
  return {
    site,
    stack: "main",
    kind: "self",
    layer: Number(/(\d+)$/.exec(site)?.[1] ?? 0),
    n_heads: 4,
    n_queries: n,
    n_keys: n,
    key_stack: "main",
    is_causal: true,
    no_weights: "",
    no_scores: "",
    no_contributions: "",
    no_neurons: "",
    window: 0,
    global_tokens: [],
    no_token_edits: "",
    grid: null,
    places: [],
    n_experts: 0,
    ...more,
  };
}

export function trace(more: Partial<TraceProps> = {}): TraceProps {
  const texts = ["<s>", "the", "cat", "sat"];
  return {
    id: "0",
    model: "builtin:gpt",
    record: "heads",
    input_kind: "text",
    text: "the cat sat",
    pair: null,
    target: null,
    edits: [],
    warnings: [],
    stacks: [stack("main", texts, { special: [0] })],
    layers: [layer("L0", 4), layer("L1", 4)],
    answers: [],
    no_answers: "",
    steps: null,
    difference: null,
    other_layers: [],
    edited_heads: [],
    edited_layers: [],
    pruned_heads: [],
    edited_weights: [],
    ...more,
  };
}

/** An encoder and a decoder, with cross-attention between them. */
export function translation(): TraceProps {
  const own = { stack: "decoder", key_stack: "decoder" };
  return trace({
    model: "builtin:translate",
    stacks: [
      stack("encoder", ["a", "cat", "</s>"], { special: [2] }),
      stack("decoder", ["<pad>", "кот"], { special: [0] }),
    ],
    layers: [
      layer("encoder.L0", 3, { stack: "encoder", key_stack: "encoder", is_causal: false }),
      layer("decoder.L0", 2, own),
      layer("cross.L0", 2, { ...own, kind: "cross", key_stack: "encoder", n_keys: 3, is_causal: false }),
    ],
  });
}
