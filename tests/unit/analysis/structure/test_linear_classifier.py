import pytest
import torch

from headscope.analysis.structure.linear_classifier import fit, select


def test_what_a_line_separates_is_learnt():
    vectors = torch.randn(300, 5) * torch.tensor([100.0, 1.0, 1e-3, 1.0, 1.0]) + 7  # units do not matter
    labels = 2 * (vectors[:, 2] > 7).long() + (vectors[:, 0] > 7).long()
    classifier = fit(vectors, labels, 4, 1e-4)
    assert (classifier.predict(vectors) == labels).float().mean() > 0.95


def test_a_constant_feature_does_no_harm():
    vectors = torch.cat([torch.randn(50, 1), torch.ones(50, 1)], dim=1)
    classifier = fit(vectors, (vectors[:, 0] > 0).long(), 2, 1e-3)
    assert (classifier.predict(vectors) == (vectors[:, 0] > 0)).all()


def test_the_slope_is_zero_where_it_ends():
    vectors, labels = torch.randn(80, 4), torch.randint(0, 3, (80,))
    classifier = fit(vectors, labels, 3, 0.1)
    features = (vectors - classifier.mean) / classifier.scale
    weight = classifier.weight.clone().requires_grad_()
    loss = (
        torch.nn.functional.cross_entropy(features @ weight.T + classifier.bias, labels) + 0.05 * weight.square().sum()
    )
    loss.backward()
    assert float(weight.grad.abs().max()) < 1e-4


def test_the_penalty_that_does_best_elsewhere_is_chosen():
    vectors = torch.randn(60, 50)
    labels = (vectors[:, 0] > 0).long()
    noisy = torch.where(torch.rand(60) < 0.2, 1 - labels, labels)
    dev = torch.randn(400, 50)
    classifier, score = select((vectors, noisy), (dev, (dev[:, 0] > 0).long()), 2, [1e-6, 0.3])
    assert classifier.penalty == 0.3 and score == pytest.approx(
        float((classifier.predict(dev) == (dev[:, 0] > 0)).float().mean())
    )
