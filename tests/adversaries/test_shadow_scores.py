"""Scores from the target's and shadows' confidences: naive twins, laws, and what they find where it is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import chi2, gamma, norm, t, truncnorm

from deniable.adversaries.model_observation import closeness
from deniable.adversaries.shadow_scores import (
    LIRA_CAUTION,
    OFFLINE_SLOPE,
    RULES,
    SLOPES,
    _mean_above_zero,
    _moments,
    _own_variance,
    _pool,
    _probable_means,
    _probable_variances,
    _shared_variance,
    _shrink,
    _variance_prior,
    bayes,
    lira,
    rmia,
    turn_errors,
)
from deniable.adversaries.usual_gains import SPREADS, Alone, UsualGains, possible_scales
from deniable.tradeoff import rates


def auc(scores: Any, member: Any) -> float:
    """The area under the ROC curve."""
    found = rates(scores, member)
    return float(np.trapezoid(found.tpr, found.fpr))


def confidences(
    seed: int, shadows: int = 12, records: int = 40, queries: int = 1, lead: float = 1.0
) -> tuple[Any, Any, Any, Any]:
    """Gaussian confidences with a mean of each record's own, `lead` higher where the record is inside."""
    generator = np.random.default_rng(seed)
    centre = generator.normal(0, 2, (queries, records))
    inside = np.argsort(generator.random((shadows, records)), axis=0) < shadows // 2
    member = generator.random(records) < 0.5
    noise = generator.normal(0, 1, (shadows + 1, queries, records))
    shadow = centre + noise[1:] + lead * inside[:, None]
    return centre + noise[0] + lead * member, shadow, inside, member


def split(values: Any, inside: Any, query: int, record: int) -> tuple[Any, Any]:
    """One record's confidences in shadows with and without it."""
    chosen = inside[:, record]
    return values[chosen, query, record], values[~chosen, query, record]


def naive_lira(target: Any, shadows: Any, inside: Any, fixed: bool, offline: bool) -> list[float]:
    queries, records = target.shape
    scores = []
    for record in range(records):
        total = 0.0
        for query in range(queries):
            groups = [split(shadows, inside, query, each) for each in range(records)]
            within, without = groups[record]
            flat = [np.concatenate([pair[k] - pair[k].mean() for pair in groups]) for k in (0, 1)]
            shared = [np.sqrt((part**2).sum() / (len(part) - records)) for part in flat]
            spread = shared if fixed else [part.std(ddof=1) for part in (within, without)]
            x = target[query, record]
            if offline:
                total -= norm.logsf(x, without.mean(), spread[1])
            else:
                total += norm.logpdf(x, within.mean(), spread[0]) - norm.logpdf(x, without.mean(), spread[1])
        scores.append(total)
    return scores


@pytest.mark.parametrize("queries", [1, 3])
@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("offline", [True, False])
def test_lira_equals_its_twin(queries: int, fixed: bool, offline: bool) -> None:
    target, shadows, inside, _ = confidences(1, queries=queries, records=15)
    found = lira(target, shadows, inside, offline=offline, fixed_variance=fixed)
    assert found == pytest.approx(naive_lira(target, shadows, inside, fixed, offline), rel=1e-9)


@pytest.mark.parametrize("uneven", [0.0, 0.6])
@pytest.mark.parametrize("shadows", [4, 32])
def test_records_variances_are_drawn_together_as_far_as_they_are_errors(shadows: int, uneven: float) -> None:
    """Nearer to the truth than one variance for all and than each record's own, whether or not records are alike."""
    _, made, inside, _ = confidences(4, shadows=shadows, records=4_000)
    scale = np.exp(np.random.default_rng(5).normal(0, uneven, 4_000))
    groups = [_moments(made * scale, chosen) for chosen in (~inside, inside)]

    def error(variances: Any) -> float:
        return float(np.abs(np.log(variances / scale**2)).mean())

    for found, group in zip(_probable_variances(groups)[0], groups, strict=True):
        assert error(found) < min(error(_shared_variance(group)), error(_own_variance(group))) + 0.05


@pytest.mark.parametrize("offline", [True, False])
@pytest.mark.parametrize(("shadows", "freedom"), [(8, 2.0), (8, 10.0), (32, 2.0), (32, 10.0)])
def test_lira_is_no_weaker_than_one_variance_nor_than_own_ones(shadows: int, freedom: float, offline: bool) -> None:
    """Few shadows or many, records much alike or not: there is no bound at which one rule replaces another."""
    target, made, inside, member = confidences(6, shadows=shadows, records=8_000)
    scale = np.sqrt(freedom / np.random.default_rng(7).chisquare(freedom, 8_000))
    asked = [values * scale for values in (target, made)]
    literal = [auc(lira(*asked, inside, offline=offline, fixed_variance=fixed), member) for fixed in (True, False)]
    assert auc(lira(*asked, inside, offline=offline), member) > max(literal) - 0.002


def test_offline_lira_is_no_weaker_than_literal_where_variances_follow_means() -> None:
    """Easy records vary much: one variance for all sounds the alarm for them, own ones of 4 values for anybody."""
    generator = np.random.default_rng(10)
    centre = generator.normal(0, 1, 8_000)
    inside = np.arange(8)[:, None] % 2 == np.zeros(8_000)
    member = generator.random(8_000) < 0.5
    scale = np.exp(centre / 2)
    noise = scale * generator.normal(0, 1, (9, 8_000))
    target, shadows = 4 * centre + noise[0] + scale * member, 4 * centre + noise[1:]
    literal = [
        auc(lira(target, shadows, inside, offline=True, fixed_variance=fixed), member) for fixed in (True, False)
    ]
    for name in ("lira-offline", "bayes-offline"):
        assert auc(RULES[name](target, shadows, inside), member) > max(literal), name


def uneven_gains(shadows: int) -> tuple[Any, Any, Any, Any]:
    """Records gain in their own deviations, which have heavy tails: hard ones much, easy ones hardly anything."""
    generator = np.random.default_rng(12)
    centre, share = generator.normal(0, 2, 10_000), np.exp(generator.normal(0, 0.3, 10_000))
    inside = np.argsort(generator.random((shadows, 10_000)), axis=0) < shadows // 2
    member = generator.random(10_000) < 0.5
    gain = expit(-centre) * share * np.concatenate([member[None], inside])
    scale = np.sqrt(3 / generator.chisquare(3, 10_000))
    values = 3 * centre + scale * (gain + generator.normal(0, 1, (shadows + 1, 10_000)))
    return values[0], values[1:], inside, member


@pytest.mark.parametrize("shadows", [8, 32])
@pytest.mark.parametrize("name", ["lira", "bayes", "lira-offline", "bayes-offline"])
def test_what_other_records_gain_makes_lira_stronger_than_the_literal_one(name: str, shadows: int) -> None:
    target, made, inside, member = uneven_gains(shadows)
    offline = name.endswith("-offline")
    more = 0.01 if offline else 0.024
    for fixed in (True, False):
        literal = lira(target, made, inside, offline=offline, fixed_variance=fixed)
        assert auc(RULES[name](target, made, inside), member) > auc(literal, member) + more


def naive_cubic(values: list[float], at: list[float], place: float) -> float:
    """A cubic through the values."""
    centre, width = np.mean(at), np.std(at)
    stretched = [float(np.clip((x - centre) / width, -3, 3)) for x in (*at, place)]
    return float(np.polynomial.Polynomial.fit(stretched[:-1], values, 3)(stretched[-1]))


def naive_law(place: float, usual: float, spread: float, variance: float, scales: list[float]) -> float:
    """The density of a value around a gain from a gamma distribution, its deviation known but for a scale."""
    middles = (np.arange(12) + 0.5) / 12
    gains = gamma.ppf(middles, spread**-2.0)
    gains *= usual / gains.mean()
    return float(np.mean([scale * norm.pdf(place * scale, gains, np.sqrt(variance)) for scale in scales]))


@pytest.mark.parametrize("name", ["lira-offline", "bayes-offline"])
def test_offline_scores_equal_their_twin(name: str) -> None:
    """The likelier of few spreads of gains; then the target's place, with and without such a gain."""
    target, shadows, inside, _ = confidences(13, records=60, lead=2.0)
    groups = [_moments(shadows, ~inside)]
    variances, freedom = _probable_variances(groups, LIRA_CAUTION if name == "lira-offline" else 1.0)
    means, error = _probable_means(groups, variances)
    mean, unit = means[0][0], np.sqrt(variances[0] + error)[0]
    middles = (np.arange(12) + 0.5) / 12
    squares = chi2.ppf(middles, freedom[0, 0]) if name == "bayes-offline" else np.ones(1)
    scales = [float(x) for x in np.sqrt(squares / squares.mean())]
    parts = [split(shadows, inside, 0, record) for record in range(60)]
    ratios = [float(np.log(each[0].var() / each[1].var())) for each in parts]
    narrowing = [np.exp(naive_cubic(ratios, list(mean), place)) for place in mean]
    gains = [float((each[0].mean() - m) / u) for each, m, u in zip(parts, mean, unit, strict=True)]
    usual = [max(naive_cubic(gains, list(mean), place), 0.2 * float(np.mean(gains))) for place in mean]
    share = (error / np.square(unit))[0]
    counts = [len(each[0]) for each in parts]

    def likelihood(spread: float) -> float:
        laws = [
            naive_law(gain, known, spread, less * (1 - e) / count + e, scales)
            for gain, known, e, count, less in zip(gains, usual, share, counts, narrowing, strict=True)
        ]
        return float(np.mean(np.log(laws)))

    spread = max(SPREADS, key=likelihood)
    found = RULES[name](target, shadows, inside)
    for record, place in enumerate((target[0] - mean) / unit):
        variance = narrowing[record] * (1 - share[record]) + share[record]
        together = naive_law(place, usual[record], spread, variance, scales)
        expected = np.log(together / naive_law(place, 0.0, spread, 1.0, scales))
        assert found[record] == pytest.approx(expected, rel=1e-6)


def scattered_gains(seed: int) -> tuple[Any, Any, Any, Any]:
    """Of 20,000 records most gain nearly nothing, some much, as where a model classes most of them wrongly."""
    generator = np.random.default_rng(seed)
    centre, gain = generator.normal(0, 6, 20_000), generator.gamma(0.5, 1.2, 20_000)
    inside = np.argsort(generator.random((8, 20_000)), axis=0) < 4
    member = generator.random(20_000) < 0.5
    values = gain * np.concatenate([member[None], inside]) + generator.normal(0, 1, (9, 20_000))
    values = centre + values * np.sqrt(6 / generator.chisquare(6, 20_000))
    return values[0], values[1:], inside, member


def found_at(scores: Any, member: Any, alarms: float = 0.01) -> float:
    """Members found at this rate of false alarms."""
    return float(np.mean(scores[member] > np.quantile(scores[~member], 1 - alarms)))


def test_where_few_records_gain_much_offline_bayes_finds_no_fewer_than_the_literal_one() -> None:
    found = []
    for seed in (1, 2):
        target, made, inside, member = scattered_gains(seed)
        literal = lira(target, made, inside, offline=True, fixed_variance=True)
        found.append(found_at(bayes(target, made, inside, offline=True), member) - found_at(literal, member))
    assert np.mean(found) > 0


def test_a_target_farther_above_its_mean_is_likelier_a_member_however_poorly_the_deviation_is_known() -> None:
    """Two Student densities a gain apart say otherwise: far out they are alike."""
    one = np.ones((1, 1))
    alone = Alone(0 * one, one, 0.2 * one, possible_scales(4.0 * one))
    gains = UsualGains(usual=one, spread=0.5 * one, narrowing=one, told=one > 0)
    scores = [float(gains.log_ratio(place * one, alone)[0, 0]) for place in np.linspace(-5, 30, 40)]
    assert (np.diff(scores) > 0).all()


@pytest.mark.parametrize("name", ["lira-offline", "bayes-offline"])
def test_a_record_may_be_in_one_shadow_alone(name: str) -> None:
    """How the shadows with it vary is not known, then: as those without it."""
    generator = np.random.default_rng(18)
    inside = np.arange(9)[:, None] == np.arange(4_000) % 9
    member = generator.random(4_000) < 0.5
    values = generator.normal(0, 3, 4_000) + generator.normal(0, 1, (10, 4_000))
    values += 2.0 * np.concatenate([member[None], inside])
    assert auc(RULES[name](values[0], values[1:], inside), member) > 0.89


def regression_errors(seed: int) -> tuple[Any, Any, Any, Any]:
    """With a record a model's error is smaller by a share of the record's own."""
    generator = np.random.default_rng(seed)
    centre, share = generator.normal(0, 1, 8_000), generator.uniform(0, 0.5, 8_000)
    inside = np.argsort(generator.random((8, 8_000)), axis=0) < 4
    member = generator.random(8_000) < 0.5
    errors = centre + 0.4 * generator.normal(0, 1, (9, 8_000))
    errors *= 1 - share * np.concatenate([member[None], inside])
    return errors[0], errors[1:], inside, member


@pytest.mark.parametrize("name", ["lira", "bayes", "lira-offline", "bayes-offline"])
def test_which_way_a_prediction_errs_tells_more_than_how_far(name: str) -> None:
    more = []
    for seed in (1, 2):
        target, made, inside, member = regression_errors(seed)
        turned = turn_errors(target, made, inside, offline=name.endswith("-offline"))
        close = [closeness(each, float(np.square(target).mean())) for each in (target, made)]
        scores = [RULES[name](*each, inside) for each in (turned, close)]
        assert auc(scores[0], member) > auc(scores[1], member)
        more.append(found_at(scores[0], member) - found_at(scores[1], member))
    assert np.mean(more) > 0


def test_errors_are_turned_so_that_towards_zero_is_up_for_whoever_lacks_the_record() -> None:
    made = np.array([[3.0, -3.0], [-9.0, 9.0]])
    inside = np.array([[False, False], [True, True]])
    target = np.array([1.0, -1.0])
    assert turn_errors(target, made, inside, offline=True)[0].tolist() == [[-1.0, -1.0]]
    assert turn_errors(target, made, inside)[0].tolist() == [[1.0, 1.0]]


@pytest.mark.parametrize("known", [0, 20])
def test_where_hardly_a_record_was_in_a_shadow_offline_lira_asks_how_unusual_the_target_is(known: int) -> None:
    target, shadows, inside, _ = confidences(14, records=60)
    inside[:, known:] = False
    groups = [_moments(shadows, ~inside)]
    variances = _probable_variances(groups, LIRA_CAUTION)[0]
    mean, variance = _probable_means(groups, variances).means[0], variances[0]
    expected = -norm.logsf(target[0], mean[0], np.sqrt(variance[0]))
    assert lira(target, shadows, inside, offline=True) == pytest.approx(expected)


def test_a_gain_is_above_zero_however_uncertain() -> None:
    """The mean of a normal value above zero, by quadrature; far below, one over the distance."""
    for mean, deviation in [(1.0, 0.5), (0.0, 1.0), (-2.0, 1.0), (3.0, 0.0)]:
        expected = truncnorm(-mean / max(deviation, 1e-6), np.inf, mean, max(deviation, 1e-6)).mean()
        assert _mean_above_zero(np.array(mean), np.array(deviation**2)) == pytest.approx(expected, rel=1e-5)
    assert _mean_above_zero(np.array(-1e3), np.array(1.0)) == pytest.approx(1e-3, rel=1e-3)


def test_lira_is_no_weaker_than_the_threshold_where_shadows_tell_nothing_of_a_record() -> None:
    """All records gain the same little: the literal score is drowned by the errors of 2 x 4 means."""
    target, shadows, inside, member = confidences(8, shadows=8, records=20_000, lead=0.2)
    literal = auc(lira(target, shadows, inside, fixed_variance=True), member)
    for rule in (lira, bayes):
        found = auc(rule(target, shadows, inside), member)
        assert found > literal + 0.02
        assert found > auc(target[0], member)


def test_means_are_drawn_together_as_far_as_they_are_errors() -> None:
    """Normal values with known errors: the posterior mean is nearest to the truth, by the textbook's variance."""
    generator = np.random.default_rng(9)
    truth = generator.normal(1, 0.5, (1, 40_000))
    found, error = _shrink(
        truth + generator.normal(0, 1, (1, 40_000)), np.ones((1, 40_000)), np.full((1, 1), truth.mean())
    )
    assert np.square(found - truth).mean() == pytest.approx(0.25 / 1.25, rel=0.03)
    assert error == pytest.approx(0.25 / 1.25, rel=0.1)


@pytest.mark.parametrize("offline", [True, False])
def test_rmia_equals_its_twin(offline: bool) -> None:
    """The ratio, and the share of other records that a record beats (Zarifzadeh 2024, Equation 3)."""
    target, shadows, inside, _ = confidences(2)
    ratio = []
    for record in range(target.shape[1]):
        within, without = (expit(part).mean() for part in split(shadows, inside, 0, record))
        usual = (1.3 * without + 0.7) / 2 if offline else (within + without) / 2
        ratio.append(expit(target[0, record]) / usual)
    assert np.exp(rmia(target, shadows, inside, offline=offline, slope=0.3)) == pytest.approx(ratio)
    others = np.arange(20, 40)
    share = [np.mean([own / ratio[z] >= 1.2 for z in others]) for own in ratio]
    found = rmia(target, shadows, inside, offline=offline, slope=0.3, population=others, gamma=1.2)
    assert found == pytest.approx(share)


def test_offline_rmia_takes_the_slope_that_tells_its_own_shadows_apart_best() -> None:
    """Naive twin: each shadow once as the target, judged by the shadows without each record."""
    target, shadows, inside, _ = confidences(5, shadows=10, records=400, lead=2.0)
    target, shadows = target - 4, shadows - 4  # small probabilities
    areas = []
    for slope in SLOPES:
        found = []
        for place in range(len(shadows)):
            rest, member = np.delete(shadows, place, axis=0), np.delete(inside, place, axis=0)
            usual = [((1 + slope) * expit(rest[~member[:, z], 0, z]).mean() + 1 - slope) / 2 for z in range(400)]
            found.append(auc(expit(shadows[place, 0]) / usual, inside[place]))
        areas.append(np.mean(found))
    assert max(areas) > areas[3] + 0.01  # the usual .3 would be weaker
    best = rmia(target, shadows, inside, offline=True, slope=float(SLOPES[np.argmax(areas)]))
    assert rmia(target, shadows, inside, offline=True) == pytest.approx(best)


def test_where_no_shadow_had_a_record_the_slope_is_the_usual_one() -> None:
    target, shadows, _, _ = confidences(6)
    nobody = np.zeros((len(shadows), target.shape[1]), dtype=bool)
    assert rmia(target, shadows, nobody, offline=True) == pytest.approx(
        rmia(target, shadows, nobody, offline=True, slope=OFFLINE_SLOPE)
    )


@given(st.integers(0, 10**6))
def test_the_share_orders_records_as_the_ratio_does(seed: int) -> None:
    target, shadows, inside, _ = confidences(seed)
    order = np.argsort(rmia(target, shadows, inside))
    share = rmia(target, shadows, inside, population=np.arange(10))
    assert (np.diff(share[order]) >= 0).all()


@pytest.mark.parametrize("offline", [True, False])
def test_bayes_equals_its_twin(offline: bool) -> None:
    """The priors that were found, put into SciPy's Student density by the conjugate updates, record by record."""
    target, shadows, inside, _ = confidences(3, records=30)
    chosen = [~inside] if offline else [~inside, inside]
    groups = [_moments(shadows, each) for each in chosen]
    scales = [float(_shared_variance(group)[0, 0]) for group in groups]
    prior = _variance_prior(_pool(groups))
    freedom = float(prior.freedom[0, 0])
    variances = np.zeros((len(groups), 1, 30))
    for record in range(30):
        own = [shadows[each[:, record], 0, record] for each in chosen]
        squares = sum(((part - part.mean()) ** 2).sum() / scale for part, scale in zip(own, scales, strict=True))
        count = sum(len(part) - 1 for part in own)
        for place, scale in enumerate(scales):
            variances[place, 0, record] = scale * (freedom * prior.usual[0, 0] + squares) / (freedom + count)
    means, error = _probable_means(groups, list(variances))
    laws = [
        t(freedom + count, mean[0], np.sqrt(variance[0] + error[0]))
        for mean, variance in zip(means, variances, strict=True)
    ]
    expected = -laws[0].logsf(target[0]) if offline else laws[1].logpdf(target[0]) - laws[0].logpdf(target[0])
    assert bayes(target, shadows, inside, offline=offline) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("freedom", [3.0, 12.0])
def test_the_prior_of_variances_is_found(freedom: float) -> None:
    """Variances drawn from a scaled inverse chi-square: its freedom and scale come out."""
    generator = np.random.default_rng(0)
    variance = 2.5 * freedom / generator.chisquare(freedom, 40_000)
    values = generator.normal(0, np.sqrt(variance), (10, 1, 40_000))
    moments = _moments(values, np.ones((10, 40_000), dtype=bool))
    found, usual = _variance_prior(moments)
    assert float(found[0, 0]) == pytest.approx(freedom, rel=0.1)
    assert usual == pytest.approx(2.5, rel=0.05)
    assert np.ptp(usual) == 0, "no trend where there is none"


def test_every_score_finds_what_is_there_and_nothing_where_nothing_is() -> None:
    """Two Gaussians one deviation apart have AUC Phi(1 / sqrt(2)); 64 shadows nearly reach it, offline, too."""
    best = float(norm.cdf(2**-0.5))
    there, nothing = (confidences(4, shadows=64, records=20_000, lead=lead) for lead in (1.0, 0.0))
    for name, rule in RULES.items():
        assert abs(auc(rule(*nothing[:3]), nothing[3]) - 0.5) < 0.015, name
    found = {name: auc(rule(*there[:3]), there[3]) for name, rule in RULES.items()}
    for name in ("lira", "lira-offline", "bayes", "bayes-offline"):
        assert best - 0.015 < found[name] < best + 0.01
    assert found["threshold"] < best - 0.1
    assert min(value for name, value in found.items() if name != "threshold") > found["threshold"] + 0.03


def test_several_queries_say_more() -> None:
    one, four = (confidences(5, shadows=32, records=4_000, queries=queries) for queries in (1, 4))
    assert auc(lira(*four[:3]), four[3]) > auc(lira(*one[:3]), one[3]) + 0.05


@pytest.mark.parametrize("name", ["lira-offline", "bayes-offline"])
def test_a_query_that_tells_nothing_takes_nothing_away(name: str) -> None:
    """As a digit's mirror image, of which models know nothing."""
    one = confidences(15, shadows=16, records=4_000)
    none = confidences(16, shadows=16, records=4_000, lead=0.0)
    target, made = (np.concatenate([one[place], none[place]], axis=-2) for place in (0, 1))
    found = RULES[name](target, made, one[2])
    assert auc(found, one[3]) == pytest.approx(auc(RULES[name](*one[:3]), one[3]), abs=1e-9)


@given(st.sampled_from(sorted(RULES)), st.integers(0, 10**6))
def test_scores_do_not_depend_on_the_order_of_shadows(rule: str, seed: int) -> None:
    target, shadows, inside, _ = confidences(seed)
    order = np.random.default_rng(seed).permutation(len(shadows))
    assert RULES[rule](target, shadows[order], inside[order]) == pytest.approx(RULES[rule](target, shadows, inside))


def test_few_or_equal_shadows_give_finite_scores() -> None:
    target, shadows, inside, _ = confidences(6, shadows=2)
    for rule in RULES.values():
        assert np.isfinite(rule(target, shadows, inside)).all()
        assert np.isfinite(rule(target, np.zeros_like(shadows), inside)).all()
        assert np.isfinite(rule(1e3 * target, shadows, inside)).all()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda a, b, c: (a[:, :3], b, c), "must be"),
        (lambda a, b, c: (a, b, c[:1]), "must be"),
        (lambda a, b, c: (np.where(a > 0, np.nan, a), b, c), "finite"),
        (lambda a, b, c: (a, b, np.ones_like(c)), "out of at least one"),
        (lambda a, b, c: (a, b, np.zeros_like(c)), "or score offline"),
    ],
)
def test_bad_arrays_are_refused(change: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        lira(*change(*confidences(7)[:3]))
