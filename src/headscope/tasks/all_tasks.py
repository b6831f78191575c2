"""Every task, to say which of them fit a model."""

from headscope.models import Model
from headscope.tasks.class_tasks import ImageClassification, SequenceClassification, Tagging
from headscope.tasks.language_tasks import LanguageModelling, MaskedLanguageModelling
from headscope.tasks.learning_task import LearningTask
from headscope.tasks.translation_task import Translation

TASKS: tuple[type[LearningTask], ...] = (
    Translation,
    LanguageModelling,
    MaskedLanguageModelling,
    SequenceClassification,
    Tagging,
    ImageClassification,
)


def fitting_tasks(model: Model) -> list[str]:
    """The names of the tasks that a model can do."""
    return [task.name for task in TASKS if task.fits(model)]
