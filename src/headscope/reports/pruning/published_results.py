"""What Voita et al. (2019) published on pruning heads: BLEU by heads kept, of Transformer-base, 6 × 8 heads a type."""

from dataclasses import dataclass

SOURCE = (
    "Voita et al. (2019), English to Russian, Transformer-base with 48 heads of each type: another model, other data "
    "and other BLEU, so read the rows beside ours, not against them."
)


@dataclass(frozen=True)
class PublishedRow:
    """A row of table 2: heads kept by type, and BLEU from the trained model and from scratch."""

    data: str
    encoder: int
    decoder: int
    cross: int
    trained: float
    scratch: float | None = None


TABLE_2 = (
    PublishedRow("WMT", 48, 48, 48, 29.6),
    PublishedRow("WMT", 14, 31, 30, 29.62, 29.47),
    PublishedRow("WMT", 12, 21, 25, 29.36, 28.95),
    PublishedRow("WMT", 8, 13, 15, 29.06, 28.56),
    PublishedRow("WMT", 5, 9, 12, 28.90, 28.41),
    PublishedRow("OpenSubtitles", 48, 48, 48, 32.4),
    PublishedRow("OpenSubtitles", 27, 31, 46, 32.24, 32.23),
    PublishedRow("OpenSubtitles", 13, 17, 31, 32.23, 31.98),
    PublishedRow("OpenSubtitles", 6, 9, 13, 32.27, 31.84),
)

# Figure 7: only the encoder is pruned, the decoder is frozen. Data, heads kept of 48, and BLEU lost.
ENCODER_ONLY = (("WMT", 10, 0.15), ("OpenSubtitles", 4, 0.25))
ROLES = "with 17 of 48 encoder heads, every function still has a head"
TYPES = "encoder heads go first; cross-attention is kept longest"
LAYERS = "lower decoder layers keep self-attention heads, upper layers cross-attention heads"
