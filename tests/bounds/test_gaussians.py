"""Divergences between Gaussians against quadrature, and the erratum of the printed formula."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from boundwatch.bounds import kl_divergence, log_density_ratio, renyi_divergence

CASES = [(0.8, 1.2, 0.0, 1.0), (0.3, 0.5, -0.1, 0.4), (-1.0, 0.02, 0.5, 1.5)]
CASES.append((0.01, np.exp(-6), 0.0, np.exp(-6)))


def quadrature(mean, variance, prior_mean, prior_variance, power):
    """Integrate P0 (P/P0)^power (power 2), or P ln(P/P0) (power None)."""
    p, p0 = norm(mean, np.sqrt(variance)), norm(prior_mean, np.sqrt(prior_variance))

    def integrand(w):
        ratio = p.logpdf(w) - p0.logpdf(w)
        return p.pdf(w) * (np.exp(ratio) if power == 2 else ratio)

    reach = 40 * np.sqrt(max(variance, prior_variance))
    centers = sorted([mean, prior_mean, 2 * mean - prior_mean])
    return quad(integrand, mean - reach, mean + reach, points=centers, limit=400, epsabs=1e-13)[0]


def printed_renyi(mean, variance, prior_mean, prior_variance):
    """The closed form as the paper prints it, without the inverse."""
    sigma = 2 * prior_variance - variance
    return (mean - prior_mean) ** 2 * sigma - 0.5 * np.log(sigma * variance / prior_variance**2)


@pytest.mark.parametrize("case", CASES)
def test_renyi_matches_quadrature(case):
    assert renyi_divergence(*case) == pytest.approx(np.log(quadrature(*case, power=2)), rel=1e-6)
    assert kl_divergence(*case) == pytest.approx(quadrature(*case, power=None), rel=1e-6)
    assert renyi_divergence(*case) >= kl_divergence(*case)


def test_the_printed_formula_fails_this_test():
    wrong = [printed_renyi(*case) for case in CASES]
    right = [np.log(quadrature(*case, power=2)) for case in CASES]
    assert not np.allclose(wrong, right, rtol=1e-2)
    # Near variances of e^-6 it forgets nearly all that the mean's shift costs.
    shifted = (0.05, np.exp(-6), 0.0, np.exp(-6))
    assert renyi_divergence(*shifted) > 1e5 * printed_renyi(*shifted) > 0


@pytest.mark.parametrize("variance", [2.0, 2.5, np.inf])
def test_renyi_is_infinite_outside_its_domain(variance):
    assert renyi_divergence([0.0, 0.0], [1.0, variance], 0.0, 1.0) == np.inf


def test_a_million_dimensions_lose_nothing():
    d = 1_000_000
    many = renyi_divergence(np.full(d, 1e-6), np.full(d, 1 + 1e-6), 0.0, 1.0)
    assert many == pytest.approx(d * renyi_divergence(1e-6, 1 + 1e-6, 0.0, 1.0), rel=1e-12)
    # One half of r^2 a dimension, where 1 - r^2 itself rounds to 1.
    tiny = renyi_divergence(np.zeros(d), np.full(d, 1 + 1e-9), 0.0, 1.0)
    assert tiny == pytest.approx(d * 0.5e-18, rel=1e-6)


def test_log_density_ratio_is_the_difference_of_log_densities():
    rng = np.random.default_rng(0)
    w, mean, prior = rng.normal(size=(3, 5))
    variance, prior_variance = rng.uniform(0.5, 2, size=(2, 5))
    expected = norm(mean, variance**0.5).logpdf(w).sum() - norm(prior, prior_variance**0.5).logpdf(w).sum()
    assert log_density_ratio(w, mean, variance, prior, prior_variance) == pytest.approx(expected)
