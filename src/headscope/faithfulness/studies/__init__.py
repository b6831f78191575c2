"""Studies that train small models to ask whether attention explains: stacks of models, trained side by side."""

from typing import TYPE_CHECKING

from headscope.lazy import public_names

if TYPE_CHECKING:
    from headscope.faithfulness.studies.chunking import ChunkingOptions as ChunkingOptions
    from headscope.faithfulness.studies.chunking import ChunkingResult as ChunkingResult
    from headscope.faithfulness.studies.chunking import train_chunkers as train_chunkers
    from headscope.faithfulness.studies.tagger_tasks import TaggerOptions as TaggerOptions

__getattr__, __dir__ = public_names(__name__)
