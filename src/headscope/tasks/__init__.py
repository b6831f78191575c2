"""Tasks: what a model is trained for and judged by. Data, loss and metric, and the training itself."""

from typing import TYPE_CHECKING

from headscope.lazy import public_names

if TYPE_CHECKING:
    from headscope.tasks.class_tasks import image_classification as image_classification
    from headscope.tasks.class_tasks import sequence_classification as sequence_classification
    from headscope.tasks.class_tasks import tagging as tagging
    from headscope.tasks.fit_options import FitOptions as FitOptions
    from headscope.tasks.iob_chunks import ChunkCounts as ChunkCounts
    from headscope.tasks.iob_chunks import chunk_f1 as chunk_f1
    from headscope.tasks.iob_chunks import chunks as chunks
    from headscope.tasks.language_tasks import language_modelling as language_modelling
    from headscope.tasks.language_tasks import masked_language_modelling as masked_language_modelling
    from headscope.tasks.learning_task import LearningTask as LearningTask
    from headscope.tasks.learning_task import TaskInput as TaskInput
    from headscope.tasks.score import Score as Score
    from headscope.tasks.trained_parameters import ParameterGroup as ParameterGroup
    from headscope.tasks.training_run import Fit as Fit
    from headscope.tasks.training_run import fit as fit
    from headscope.tasks.training_run import read_fit as read_fit
    from headscope.tasks.translation_task import translation as translation

__getattr__, __dir__ = public_names(__name__)
