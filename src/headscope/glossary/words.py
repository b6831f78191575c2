"""Words of the documentation, the API and the page."""

WORDS = {
    "query, key, value": "the three vectors of a token in a head, as the head uses them: after rotary positions",
    "scores": "query · key, scaled, capped, with bias and mask; before the softmax",
    "pattern": "after the softmax: the attention weights [query, key]",
    "mixed": "pattern · value: the head's output before the output projection W_O",
    "residual": "the stream that layers read from and add to",
    "neurons": "MLP activations: what enters the projection that writes back to the residual stream; of a head, the "
    "coordinates of its query, key, value and mixed vectors",
    "head": "`Head(stack, layer, index, kind)`, counted from 0; prints as `L5H1`, `encoder.L5H1`, `cross.L5H1`",
    "site": "a layer of a stack: its attention, its neurons or its residual stream",
    "stack": "`main`, or `encoder`, `decoder`, `text`, `vision`, `audio` where a model has several",
    "trace": "the record of one run",
    "session": "what watches and edits a model while it runs",
    "intervention": "an edit, where it acts, and on which tokens",
    "measure": "a quantity of every head: computed from traces, over a corpus or from weights",
    "scores (`Scores`)": "one number per head, with its provenance",
    "role": "what a head does by a published criterion: its score meets the criterion, and the lower end of its "
    "interval is above chance",
    "routed, traced, weights only": "the three ways we see a model's attention",
    "sink": "a learned share of each row that goes to no key (gpt-oss): its rows sum to less than one",
    "Jensen-Shannon divergence": "how far two rows of weights are apart: 0 for equal rows, ln 2 = 0.693 nats for rows "
    "that share no key",
    "total variation": "half the L1 distance of two rows of weights or of two outputs: 0 to 1",
    "KL divergence": "Σ p ln(p / q), in nats: 0 for equal rows, infinite where q is 0 on a key that p has",
    "supported, mixed, not supported": "what tests say of a head's attention as an explanation of the output: all three "
    "parts pass, they disagree or do not decide, or the output does not need the pattern (or it neither agrees nor is "
    "exclusive)",
    "gradient × input": "|Σ e · ∂p/∂e| of a token's embedding e, with attention patterns held fixed",
    "leave-one-out": "how far the output moves, in total variation, without one token",
    "τ-b": "Kendall's rank correlation with ties taken out: 1 for the same order, 0 by chance, −1 for the reverse",
    "bake": "to write edits into weights",
    "pruned head": "a head whose output is removed for good; survivors are those that are kept",
    "gate": "a factor from 0 to 1 on a head's output, which L0 training opens or closes; log α is its parameter",
    "λ": "the penalty of L0 training, in nats per open head: a larger one keeps fewer heads",
    "sweep": "a model pruned at several λ or numbers of heads for one task, in a folder",
    "point": "one of these: which heads survive, how they were chosen, the weights, the score",
    "mask": "for each head whether it survives",
    "slim": "a model whose pruned heads are really removed from its weights",
    "atlas": "the queries and keys of a corpus as points, one picture per head",
    "joint space": "queries and keys of a head as points of one space: keys translated, both scaled",
    "lifted": "of a joint space: with one more dimension, so that for every query the nearer key has the larger logit",
    "key bias": "the part of a logit that is the key's alone, q̄·(k − k̄): the joint space hides it, sinks live there",
    "trustworthiness": "how far neighbours on a map are neighbours in the full space: 1 if all are, 0.5 by chance",
}
