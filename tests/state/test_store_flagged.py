"""Contents that are no page's own: shared by all crawlers, and not for ever."""

from __future__ import annotations

from optimal_frontier.frontier.block_pages import BlockPages, name_of
from optimal_frontier.frontier.dispatcher import Dispatcher, Exchange
from optimal_frontier.settings import FrontierSettings

DAY_S = 86_400.0
BLOCK = bytes(range(16))


def said(store) -> dict[bytes, int]:
    (reply,) = store.run([("flag_contents", [])])
    return dict(zip(reply[::2], reply[1::2], strict=True))


def test_a_flag_holds_for_a_week_and_is_forgotten_after_a_month(store):
    """Said again it does not last longer: what is there for a week is the content."""
    name = name_of("h", BLOCK)
    assert said(store) == {}
    store.run([("flag_contents", [name])])
    for days, flagged in ((0, 1), (6, 1), (2, 0), (20, 0)):
        store.advance(days * DAY_S)
        store.run([("flag_contents", [name])])
        assert said(store) == {name: flagged}
    store.advance(3 * DAY_S)
    assert said(store) == {}


def test_the_number_of_flags_is_bounded(store):
    names = [b"h %032x" % n for n in range(1200)]
    for at in range(0, 1200, 100):
        store.run([("flag_contents", names[at : at + 100])])
        store.advance(1.0)
    assert set(said(store)) == set(names[200:])


def test_one_crawler_learns_from_another(store):
    """At its first exchange, and before long after that."""
    one, two = (Dispatcher(store, FrontierSettings.parse({})) for _ in range(2))
    one.exchange(Exchange(flags=[name_of("h", BLOCK)]))
    assert one.blocks.is_flagged("h", BLOCK)
    assert not two.blocks.is_flagged("h", BLOCK)
    two.exchange(Exchange(want=1))
    assert two.blocks.is_flagged("h", BLOCK)
    assert BlockPages().is_flagged("h", BLOCK) is False
