"""The values of options that take one of a few words: types for Python, choices for the command line and the page.

They lie below everything else and import nothing, so that `headscope --help` can list them at once.
"""

from typing import Literal

# Models and runs
Record = Literal["rows", "summary", "heads", "full"]
# Where the tensors of a trace are.
Keep = Literal["cpu", "device"]
Ablation = Literal["zero", "mean"]
OnError = Literal["fail", "skip"]
Engine = Literal["local", "ray"]
StudyName = Literal["vig", "voita", "raganato"]
StudyPrecision = Literal["fp32", "bf16"]

# What an atlas is made of, and how its points are laid out
AtlasSpace = Literal["query_key", "value", "mixed", "residual"]
Coordinates = Literal["raw", "translated", "scaled", "lifted"]
KeyScale = Literal["norms", "correlation"]
MapMethod = Literal["pca", "tsne", "umap"]
# How an atlas is drawn: of which points, how large, the map or the scatter of distances against logits
AtlasSide = Literal["both", "query", "key"]
PointSize = Literal["same", "norm"]
AtlasPlot = Literal["map", "distances"]

# Whether attention explains an output: what the model is asked, whose rows are replaced, how a token is taken out
TrustTask = Literal["sequence_classification", "tagging", "language_modelling", "masked_language_modelling"]
QueryRows = Literal["answer", "all"]
Removal = Literal["delete", "mask", "unknown"]

# Tasks and pruning
TaskName = Literal[
    "translation",
    "language_modelling",
    "masked_language_modelling",
    "sequence_classification",
    "tagging",
    "image_classification",
]
TrainedWithGates = Literal["all", "gates", "encoder"]
TrainedPrecision = Literal["fp32", "bf16", "fp16"]
StartWeights = Literal["trained", "scratch"]

# What a view shows
Scale = Literal["atlas", "model", "head", "neuron", "activations"]
Side = Literal["query", "key"]
What = Literal["pattern", "contribution", "scores"]
By = Literal["tokens", "words", "sentences"]
Form = Literal["auto", "lines", "matrix", "image", "time"]
Direction = Literal["from", "to"]
Axis = Literal["vertical", "horizontal"]
Filter = Literal["all", "threshold", "mass", "top"]
Pair = Literal["all", "AA", "AB", "BA", "BB"]
Hide = Literal["special", "first"]
# From which attention a tree is made: a dependent looks at its head, a head at its dependents, or both.
Way = Literal["A", "AT", "A+AT"]
Arcs = Literal["none", "gold", "A", "AT", "A+AT"]
Thumbnails = Literal["heat", "lines"]
Vectors = Literal["query", "key", "value", "mixed"]
Order = Literal["index", "contribution", "token", "spread"]
Fold = Literal["key", "product", "value", "weighted"]
Compare = Literal["off", "side", "difference"]
Stream = Literal["lens", "norm", "attention", "cross", "mlp", "cosine"]
Whose = Literal["either", "A", "B"]
Theme = Literal["system", "light", "dark"]
