"""A linear classifier on fixed vectors: multinomial logistic regression, fitted whole by L-BFGS."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Classifier:
    """Weights [class, feature] on standardised features, a bias [class], and the penalty that was chosen."""

    mean: Tensor
    scale: Tensor
    weight: Tensor
    bias: Tensor
    penalty: float

    def predict(self, vectors: Tensor) -> Tensor:
        """The most probable class of each vector [row]."""
        return ((vectors - self.mean) / self.scale @ self.weight.T + self.bias).argmax(-1)


def fit(vectors: Tensor, labels: Tensor, n_classes: int, penalty: float, *, n_iterations: int = 60) -> Classifier:
    """Least mean cross-entropy + penalty · ‖weight‖² / 2, from zero: the problem is convex, so there is no seed."""
    mean, scale = vectors.mean(0), vectors.std(0).clamp_min(1e-6)
    features = (vectors - mean) / scale
    weight = torch.zeros(n_classes, vectors.shape[1], device=vectors.device, requires_grad=True)
    bias = torch.zeros(n_classes, device=vectors.device, requires_grad=True)
    optimiser = torch.optim.LBFGS([weight, bias], max_iter=n_iterations, history_size=10, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(features @ weight.T + bias, labels)
        loss = loss + penalty * weight.square().sum() / 2
        loss.backward()
        return loss

    # On one thread: the products are small, and the numbers then do not depend on how many there are.
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.enable_grad():
            optimiser.step(closure)
    finally:
        torch.set_num_threads(n_threads)
    return Classifier(mean, scale, weight.detach(), bias.detach(), penalty)


def select(
    train: tuple[Tensor, Tensor], dev: tuple[Tensor, Tensor], n_classes: int, penalties: Sequence[float]
) -> tuple[Classifier, float]:
    """The classifier whose penalty does best on the second set of vectors and labels, and its accuracy there."""
    fitted = [fit(*train, n_classes, penalty) for penalty in penalties]
    scores = [float((classifier.predict(dev[0]) == dev[1]).float().mean()) for classifier in fitted]
    best = max(range(len(fitted)), key=lambda at: scores[at])
    return fitted[best], scores[best]
