# SPDX-License-Identifier: Apache-2.0
"""Are the statistics of the timing core those of scipy and numpy?"""

from __future__ import annotations

import random
import statistics

import pytest
from kiln import _measure


def cases():
    choose = random.Random(7)
    for count in (1, 2, 5, 6, 7, 19, 20, 21, 100, 101, 999, 5000):
        yield [choose.lognormvariate(0, 0.3) for _ in range(count)]
        yield [round(choose.gauss(50, 2)) for _ in range(count)]  # many equal ones


def test_medians_are_pythons():
    for samples in cases():
        assert _measure.summary(samples)["median"] == pytest.approx(
            statistics.median(samples), rel=1e-12
        )


def test_median_interval_is_scipys():
    stats = pytest.importorskip("scipy.stats")
    for samples in cases():
        wanted = stats.quantile_test(samples, p=0.5).confidence_interval(0.95)
        seen = _measure.summary(samples)
        # scipy has no interval for too few samples; here it is their range.
        low, high = (
            (min(samples), max(samples)) if wanted.low != wanted.low else (wanted.low, wanted.high)
        )
        assert (seen["low"], seen["high"]) == (low, high), len(samples)


def test_quantiles_and_outliers_are_numpys():
    numpy = pytest.importorskip("numpy")
    for samples in cases():
        seen = _measure.summary(samples)
        first, third = numpy.quantile(samples, [0.25, 0.75])
        assert (seen["p25"], seen["p75"]) == pytest.approx((first, third), rel=1e-12)
        far = sum(
            x < first - 3 * (third - first) or x > third + 3 * (third - first) for x in samples
        )
        assert seen["far"] == far


def test_bootstrap_of_paired_ratios_is_scipys():
    stats, numpy = pytest.importorskip("scipy.stats"), pytest.importorskip("numpy")
    choose = random.Random(3)
    for count in (20, 60, 300):
        base = [100 * (1 + i / count) for i in range(count)]
        a = [b * 1.02 * choose.lognormvariate(0, 0.01) for b in base]
        b = [b * choose.lognormvariate(0, 0.01) for b in base]
        logs = numpy.log(numpy.array(a) / numpy.array(b))
        wanted = stats.bootstrap(
            (logs,), numpy.median, n_resamples=8000, method="percentile", random_state=1
        )
        value, low, high = _measure.paired_ratio(a, b, resamples=8000)
        assert value == pytest.approx(float(numpy.exp(numpy.median(logs))), rel=1e-12)
        assert low == pytest.approx(float(numpy.exp(wanted.confidence_interval.low)), rel=1e-3)
        assert high == pytest.approx(float(numpy.exp(wanted.confidence_interval.high)), rel=1e-3)


def test_unpaired_ratio_is_scipys():
    stats, numpy = pytest.importorskip("scipy.stats"), pytest.importorskip("numpy")
    choose = random.Random(4)
    a, b = [choose.gauss(103, 1) for _ in range(80)], [choose.gauss(100, 1) for _ in range(120)]
    wanted = stats.bootstrap(
        (a, b), lambda x, y, axis: numpy.median(x, axis=axis) / numpy.median(y, axis=axis),
        n_resamples=8000, method="percentile", random_state=1, vectorized=True,
    )  # fmt: skip
    value, low, high = _measure.unpaired_ratio(a, b, resamples=8000)
    assert value == pytest.approx(statistics.median(a) / statistics.median(b), rel=1e-12)
    assert low == pytest.approx(wanted.confidence_interval.low, rel=1e-3)
    assert high == pytest.approx(wanted.confidence_interval.high, rel=1e-3)


def test_drift_is_spearmans():
    stats = pytest.importorskip("scipy.stats")
    for samples in cases():
        if len(set(samples)) < 3:
            continue
        wanted = stats.spearmanr(range(len(samples)), samples).statistic
        assert _measure.drift(samples) == pytest.approx(wanted, abs=1e-9)
