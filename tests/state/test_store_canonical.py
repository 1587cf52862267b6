"""``rel=canonical`` in the store: an alias is made where a redirect's would be, but for mistakes that pages make."""

from __future__ import annotations

from clocked_store import ClockedStore, fingerprint, new_page

from optimal_frontier.state.records import Move


def follow(store: ClockedStore, name: str, target: str) -> int:
    """Let the page ``name`` say that ``target`` is its canonical form."""
    move = Move(fingerprint(name), f"http://{name}", new_page(target, is_stated=False), is_canonical=True)
    return int(store.run(store.move_calls([move]))[0])


def test_a_duplicate_becomes_an_alias_of_the_page_that_it_names(store):
    store.add(new_page("a/x?sort=up"), new_page("a/x"), new_page("a/y?sort=up"))
    store.visit_all()
    assert follow(store, "a/x?sort=up", "a/x") == 2
    assert follow(store, "a/y?sort=up", "a/y") == 1
    assert store.counts()["canonical_followed"] == 2
    assert store.slot("a/x?sort=up") == store.slot("a/x")
    assert store.slot("a/y?sort=up") == store.slot("a/y")
    assert store.add(new_page("a/x?sort=up"), new_page("a/y?sort=up")) == [0, 0]
    assert (store.counts()["pages"], store.hash("hosts:pages")) == (2, {"1": "2"})


def test_two_pages_that_name_each_other_change_places_once(store):
    store.add(new_page("a/x"), new_page("a/y"))
    store.visit_all()
    assert follow(store, "a/x", "a/y") == 2
    assert follow(store, "a/y", "a/x") == 0
    assert follow(store, "a/x", "a/y") == 0
    assert store.counts()["canonical_refused"] == 1


def test_a_page_that_many_name_keeps_its_first_aliases(store):
    """The others stay pages of their own."""
    store.add(*(new_page(f"a/{n}") for n in range(30)), new_page("a/home"))
    store.visit_all()
    assert [follow(store, f"a/{n}", "a/home") for n in range(30)] == [2] * 20 + [0] * 10
    assert store.counts() | {"pages": 11, "canonical_followed": 20, "canonical_refused": 10} == store.counts()


def test_a_page_that_names_another_one_each_time_stops_somewhere(store):
    store.add(new_page("a/0"))
    store.visit_all()
    assert [follow(store, f"a/{n}", f"a/{n + 1}") for n in range(25)] == [1] * 20 + [0] * 5


def test_a_redirect_is_bound_by_none_of_this(store):
    store.add(*(new_page(f"a/{n}") for n in range(30)), new_page("a/home"))
    store.visit_all()
    moves = [Move(fingerprint(f"a/{n}"), f"http://a/{n}", new_page("a/home", is_stated=False)) for n in range(30)]
    assert store.run(store.move_calls(moves)) == [2] * 30
    assert "canonical_refused" not in store.counts()
    assert store.hash("hosts:pages") == {"1": "1"}
