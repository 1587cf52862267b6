"""The world of the example is fixed by its seed and has the properties that its figures are compared by."""

import numpy as np
import pytest
from demo.world import BUDGET, HOSTS, MEAN_CHANGE_RATE, PAGES, SECONDS, make_world


@pytest.fixture(scope="module")
def world():
    return make_world(1)


def test_same_seed_gives_the_same_world(world):
    again = make_world(1)
    assert (again.importance == world.importance).all()
    assert (again.death == world.death).all()
    assert again.links == world.links
    assert all((a == b).all() for a, b in zip(again.changes, world.changes, strict=True))
    assert not (make_world(2).importance == world.importance).all()


def test_numbers_of_the_world(world):
    changing = world.change_rate[world.change_rate > 0]
    assert (PAGES, HOSTS, BUDGET, SECONDS) == (300, 10, 50, 90)
    assert len(changing) == 270
    assert changing.mean() == pytest.approx(12 * 0.215 * 50 / 300) == pytest.approx(MEAN_CHANGE_RATE)
    assert changing.max() / changing.min() == pytest.approx(100, rel=0.02)
    assert np.isfinite(world.death).sum() == 5
    assert np.sort(world.importance)[::-1] == pytest.approx(np.arange(1, 301) ** -0.8)
    assert abs(np.corrcoef(np.argsort(np.argsort(world.importance)), world.change_rate)[0, 1]) < 0.2


def test_pages_change_at_their_rates(world):
    counts = np.array([len(times) for times in world.changes])
    expected = world.change_rate * 210
    assert (counts[expected == 0] == 0).all()
    deviation = (counts - expected)[expected > 0] / np.sqrt(expected[expected > 0])
    assert abs(deviation.mean()) < 0.25
    assert 0.8 < deviation.std() < 1.2


def test_every_page_is_reached_without_the_dying(world):
    reached, border = {0}, [0]
    while border:
        page = border.pop()
        if np.isinf(world.death[page]):
            new = set(world.links[page]) - reached
            reached |= new
            border += new
    assert reached == set(range(PAGES))


def test_version_counts_the_changes(world):
    page = int(world.change_rate.argmax())
    first, second = world.changes[page][:2]
    assert [world.version(page, t) for t in (0.0, first - 1e-9, first, second)] == [1, 1, 2, 3]
