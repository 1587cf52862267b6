"""Pages with update times: what a bit teaches, which times are worth a visit, when the next one is due."""

from __future__ import annotations

import math

import pytest
from handed_out import NEW, OLD, PAGE, RECEIVED, again, context, handed, judged, planned, visit, wait_of

from optimal_frontier.estimation.update_probabilities import learn_update, stated_beta
from optimal_frontier.frontier.judging.backoff import backoff_s
from optimal_frontier.frontier.judging.judge import told
from optimal_frontier.frontier.judging.update_times import Republished, bought_times, key_of, republished
from optimal_frontier.frontier.judging.validators import Validators
from optimal_frontier.frontier.judging.waits import Terms
from optimal_frontier.settings import Timetable
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.rows import CHECKED, OWN, TIMED, Row

#: Handouts are at a multiple of the period.
PERIOD = 1000.0
TABLE = Timetable(PERIOD, (200.0, 650.0), (0.5, 1.0))
RULE = {"host": "h", "update_times": [(200, 0.5), (650, 1.0)], "period": PERIOD}


def within(log_price: float = -math.inf, **rule: float):
    return context(planned(log_price), RULES=[RULE | rule])


def page(**values: object):
    return handed(**({"log_price": -math.inf} | values))


@pytest.mark.parametrize(("responded", "due"), [(5.0, 200.0), (199.0, 200.0), (300.0, 650.0), (651.0, 1200.0)])
def test_it_is_due_just_after_the_next_update(responded, due):
    """Never before it: rows hold 32 bits."""
    observation = judged(page(), visit(OLD, RECEIVED + responded), within())
    assert observation.row.flags == TIMED | OWN
    at = responded + wait_of(observation)
    assert due + 0.05 <= at <= due + 0.25
    stored = Row.unpack(observation.row.pack())
    assert (stored.s, stored.e) == (0.0, stored.l)
    assert responded + stored.l >= due + 0.05


def test_long_waits_are_never_short():
    """A month ahead 32 bits of a float are a quarter of a second."""
    monthly = {"update_times": [(0, 1.0)], "period": 30 * 86_400.0}
    for responded in range(0, 1_000_000, 70_001):
        observation = judged(page(), visit(OLD, RECEIVED + responded), within(**monthly))
        due = -(-(observation.row.b / 1e6) // monthly["period"]) * monthly["period"]
        assert 0.05 <= Row.unpack(observation.row.pack()).l + observation.row.b / 1e6 - due <= 1.0


def test_only_times_that_are_worth_the_price_are_bought():
    """By probability and importance; the better one first. Before the first plan all."""

    def bought(log_price: float, importance: float = 1.0, number: int = 1) -> list[bool]:
        row = Row(importance=importance, min_interval=1.0, max_interval=1e9)
        terms = Terms(log_price, planned(log_price, number=number), within().settings)
        return bought_times(Republished(TABLE, tuple(map(stated_beta, TABLE.probabilities))), row, terms)

    assert bought(-math.inf) == bought(math.log(20.0)) == [True, True]
    assert bought(math.log(500.0)) == [False, True]
    assert bought(math.log(500.0), 30.0) == [True, True]
    assert bought(math.log(1e4)) == [False, False]
    assert bought(math.log(1e4), number=0) == [True, True]


def test_a_page_whose_times_are_not_worth_a_visit_is_looked_at_once_in_its_longest_interval():
    """At an update time, the last one that it allows, so that its probabilities go on being learned; or at its end."""
    observation = judged(page(log_price=20.0), visit(OLD, RECEIVED + 5.0), within(20.0, max_interval=2500.0))
    assert 5.0 + wait_of(observation) == pytest.approx(2200.1, abs=0.1)
    short = judged(page(log_price=20.0), visit(OLD, RECEIVED + 5.0), within(20.0, max_interval=100.0))
    assert wait_of(short) == pytest.approx(100.0, abs=1e-3)
    never = judged(page(log_price=20.0), visit(OLD, RECEIVED + 5.0), within(20.0, max_interval=PERIOD))
    assert 5.0 + wait_of(never) == pytest.approx(650.1, abs=0.1)  # one visit a period is asked for: the better one


def test_a_visit_shortly_before_an_update_waits_for_it():
    """Where least interval or backoff would put it there."""
    observation = judged(page(), visit(OLD, RECEIVED + 201.0), within(min_interval=400.0))
    assert 201.0 + wait_of(observation) == pytest.approx(650.1, abs=0.1)
    failed = judged(page(failures=5), "500", within())
    wait = backoff_s(PAGE, 6)
    assert wait < 100.0
    assert wait_of(failed) == pytest.approx(200.1, abs=0.1)  # nothing was missed: the next update
    missed = judged(page(elapsed=900.0), "500", within())  # 650 of the period before was
    assert wait_of(missed) == pytest.approx(max(backoff_s(PAGE, 1), 1.0), rel=1e-5)


def test_a_bit_teaches_of_the_times_that_were_passed():
    observation = judged(page(elapsed=500.0), NEW, within())
    prior = tuple(map(stated_beta, TABLE.probabilities))
    assert observation.memory == Memory(betas=tuple(learn_update(prior, [0, 1], True)), timetable=key_of(TABLE))
    later = judged(again(observation, 300.0), NEW, within())
    assert later.memory.betas == tuple(learn_update(observation.memory.betas, [1, 0], False))
    assert Memory.unpack(later.memory.pack()) == later.memory
    failed = judged(page(elapsed=500.0), "500", within())
    assert failed.memory is None
    assert judged(again(failed, 300.0), NEW, within()).memory.betas == tuple(learn_update(prior, [1, 1], True))


def test_what_was_learned_of_another_timetable_says_nothing():
    stored = Memory(betas=((3.0, 4.0), (5.0, 6.0)), timetable=key_of(TABLE))
    assert republished(TABLE, stored).betas == stored.betas
    other = Timetable(PERIOD, (200.0, 651.0), (0.5, 1.0))
    assert republished(other, stored).betas == tuple(map(stated_beta, other.probabilities))


def test_first_visits_gone_pages_and_checks_do_not_go_by_update_times():
    assert wait_of(judged(page(), "404", within())) < 10.0
    assert wait_of(judged(page(visits=0), "500", within())) < 10.0
    checked = judged(page(memory=Memory(unchecked=99, etag=b"1"), time=1e5), visit(OLD, status=304, asked=Validators(b"1", b"")), within())
    assert checked.row.flags == TIMED | CHECKED | OWN
    assert wait_of(checked) == 1.0


def test_callbacks_are_told_the_interval_of_the_times_that_are_bought():
    handout = page()
    assert told(handout, judged(handout, OLD, within()), within())["interval"] == 500.0
    dear = page(log_price=20.0)
    assert told(dear, judged(dear, OLD, within(20.0, max_interval=2500.0)), within(20.0, max_interval=2500.0))["interval"] == 2500.0
