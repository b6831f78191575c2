"""What `prune` refuses or warns of before anything is written: the model, the data, λ, and too few steps."""

import math
import warnings
from collections.abc import Mapping, Sequence

from headscope.errors import HeadscopeWarning, InputError
from headscope.models import Model
from headscope.pruning.l0_training import gated_layers
from headscope.pruning.prune_options import PruneOptions
from headscope.tasks.learning_task import LearningTask
from headscope.tasks.task_names import Split
from headscope.tasks.trained_parameters import choose_parameters

# A penalty in nats per open head, for all types of attention or by type.
Lambda = float | Mapping[str, float]


def check_input(
    model: Model, task: LearningTask, keep: float | None, lambdas: Lambda | Sequence[Lambda], options: PruneOptions
) -> list[Lambda]:
    """Refuse what cannot work before anything is written; the λ as a list."""
    task.check(model)
    if options.dev_metric is not None:
        task.check_metric(options.dev_metric)
    choices: list[Lambda] = [lambdas] if isinstance(lambdas, int | float | Mapping) else list(lambdas)
    if (keep is None) == (not choices):
        raise InputError("prune takes either keep=… (a share of the heads) or lambdas=… (penalties), and one of them.")
    if keep is not None and not 0 <= keep <= 1:
        raise InputError(f"keep is a share of the heads, from 0 to 1, got {keep}.")
    trained = {options.parameters, options.tuned_parameters() if options.tuning else "gates"} - {"gates"}
    for parameters in trained:
        choose_parameters(model, parameters)
    _check_lambdas(model, choices, options)
    _check_data(model, task)
    return choices


def _check_lambdas(model: Model, choices: Sequence[Lambda], options: PruneOptions) -> None:
    types = list(dict.fromkeys(layer.type for layer in gated_layers(model, options)))
    for choice in choices:
        values = choice if isinstance(choice, Mapping) else dict.fromkeys(types, choice)
        unknown = [name for name in values if name not in types]
        if unknown:
            frozen = ", beside a frozen decoder" if options.parameters == "encoder" else ""
            raise InputError(
                f"there is a λ for {unknown[0]!r}, and no gates: the heads of {model.name} that are pruned here are of "
                f"type {', '.join(types)}{frozen}."
            )
        if not values or any(not 0 <= value < math.inf for value in values.values()):
            raise InputError(f"λ is a penalty in nats per open head, at least 0, got {choice}.")


def _check_data(model: Model, task: LearningTask) -> None:
    """Read all data: what cannot be read leaves no folder that refuses the data that was meant."""
    splits: tuple[Split, ...] = ("train", "dev") if task.test is None else ("train", "dev", "test")
    for split in splits:
        data = task.data(split)
        if next(iter(data), None) is None:
            raise InputError(f"the {split} data ({data.name}) have no examples.")
        if task.keeps_inputs:
            task.inputs(model, split)


def warn_of_few_steps(options: PruneOptions, keep: float | None, choices: Sequence[Lambda]) -> None:
    """Say before hours of training that no gate can close in it."""
    least = options.steps_to_close()
    penalties = [
        value for choice in choices for value in (choice.values() if isinstance(choice, Mapping) else [choice])
    ]
    if least is None or (keep == 1 if keep is not None else not any(penalties)):
        return
    rest = "" if keep is None else " Heads are removed by log α instead, whatever λ is."
    warnings.warn(
        f"no gate can close in {options.training.steps} steps: log α begins at {options.gates.log_alpha:g} and falls "
        f"by at most {options.gates_fall():.2g}.{rest} Train for {least} steps or more, or raise the learning rate of "
        "the gates.",
        HeadscopeWarning,
        stacklevel=3,
    )
