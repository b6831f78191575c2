"""Tasks: what the page can have worked out beyond the parts of a trace. One file each; to add one, add it to TASKS."""

from headscope.server.tasks.activations import ACTIVATIONS
from headscope.server.tasks.effect import EFFECT, WRITTEN
from headscope.server.tasks.examples import EXAMPLES
from headscope.server.tasks.find import FIND
from headscope.server.tasks.queue import Tasks
from headscope.server.tasks.relevance import RELEVANCE
from headscope.server.tasks.task import Desk, Task
from headscope.server.tasks.trust import TRUST
from headscope.server.tasks.usecase import USE_CASE

TASKS: dict[str, Task] = {
    task.name: task for task in (ACTIVATIONS, EXAMPLES, EFFECT, WRITTEN, FIND, USE_CASE, RELEVANCE, TRUST)
}

__all__ = ["TASKS", "Desk", "Task", "Tasks"]
