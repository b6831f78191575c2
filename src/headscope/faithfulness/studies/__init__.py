"""Studies that train small models to ask whether attention explains: stacks of models, trained side by side."""

from typing import TYPE_CHECKING

from headscope.lazy import public_names

if TYPE_CHECKING:
    from headscope.faithfulness.studies.chunking import ChunkingOptions as ChunkingOptions
    from headscope.faithfulness.studies.chunking import ChunkingResult as ChunkingResult
    from headscope.faithfulness.studies.chunking import train_chunkers as train_chunkers
    from headscope.faithfulness.studies.classifier_tasks import ClassifierOptions as ClassifierOptions
    from headscope.faithfulness.studies.exclusive import ExclusiveOptions as ExclusiveOptions
    from headscope.faithfulness.studies.exclusive import ExclusiveResult as ExclusiveResult
    from headscope.faithfulness.studies.exclusive import train_both_tasks as train_both_tasks
    from headscope.faithfulness.studies.sentiment import SentimentOptions as SentimentOptions
    from headscope.faithfulness.studies.sentiment import SentimentResult as SentimentResult
    from headscope.faithfulness.studies.sentiment import train_classifiers as train_classifiers
    from headscope.faithfulness.studies.tagger_tasks import TaggerOptions as TaggerOptions

__getattr__, __dir__ = public_names(__name__)
