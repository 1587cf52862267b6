"""Names of hosts are asked for once, and never outlive the numbers that they belong to."""

from __future__ import annotations

from timed_namespace import TimedNamespace, new_page

from optimal_frontier.state.host_names import MOST_HOSTS, HostNames


class Names:
    """A partition's names, and what was asked for."""

    def __init__(self, **names: str) -> None:
        self.names = {int(number[1:]): name.encode() for number, name in names.items()}
        self.asked: list[tuple[int, list[int]]] = []

    def __call__(self, partition: int, numbers: list[int]) -> list[bytes | None]:
        self.asked.append((partition, sorted(numbers)))
        return [self.names.get(number) for number in numbers]


def test_a_name_is_asked_for_once() -> None:
    kept = Names(n1="a", n2="b", n3="c")
    names = HostNames(kept)
    assert names.look_up(0, [1, 2, 1], 3) == {1: "a", 2: "b"}
    assert names.look_up(0, [2, 3], 3)[3] == "c"
    assert names.look_up(0, [1, 2, 3], 3) == {1: "a", 2: "b", 3: "c"}
    assert kept.asked == [(0, [1, 2]), (0, [3])]


def test_partitions_have_numbers_of_their_own() -> None:
    kept = Names(n1="a")
    names = HostNames(kept)
    names.look_up(0, [1], 1)
    names.look_up(1, [1], 1)
    assert kept.asked == [(0, [1]), (1, [1])]


def test_a_host_without_a_name_is_asked_for_again() -> None:
    kept = Names()
    names = HostNames(kept)
    assert names.look_up(0, [1], 1) == {}
    kept.names[1] = b"a"
    assert names.look_up(0, [1], 1) == {1: "a"}


def test_fewer_hosts_than_before_are_other_hosts() -> None:
    kept = Names(n1="a", n2="b")
    names = HostNames(kept)
    names.look_up(0, [1, 2], 2)
    kept.names = {1: b"z"}
    assert names.look_up(0, [1], 1) == {1: "z"}


def test_names_that_are_kept_are_bounded() -> None:
    names = HostNames(lambda partition, numbers: [b"x" for _ in numbers])
    names.look_up(0, range(MOST_HOSTS), MOST_HOSTS)
    assert len(names.look_up(0, [MOST_HOSTS + 1], MOST_HOSTS)) == 1


def test_a_name_that_is_no_text_ends_nothing() -> None:
    assert HostNames(lambda partition, numbers: [b"\xff"]).look_up(0, [1], 1) == {1: "\N{REPLACEMENT CHARACTER}"}


def test_handouts_of_an_emptied_namespace_have_the_new_names(space: TimedNamespace) -> None:
    space.add(new_page("a/1"), new_page("b/1"))
    assert {handout.host for handout in space.ask(5).handouts} == {"a", "b"}
    keys = list(space.connection.client_of(space.prefix(0)).scan_iter(match=space.prefix(0) + "*"))
    space.command("DEL", *keys)
    space.start()
    space.add(new_page("c/1"))
    (handout,) = space.ask(5).handouts
    assert (handout.host, handout.record["url"]) == ("c", "http://c/1")


def test_a_server_that_forgot_the_scripts_may_have_other_numbers(space: TimedNamespace) -> None:
    space.add(new_page("a/1"), new_page("b/1"))
    (first, second) = sorted(space.ask(5).handouts, key=lambda handout: handout.host)
    # It was started anew from a file that lacked the last hosts, and another crawler brought them in another order.
    space.command("SCRIPT", "FLUSH")
    names = space.key("hosts:names")
    space.command("HSET", names, first.row.host, "b", second.row.host, "a")
    space.advance(1e7)
    again = {handout.row.host: handout.host for handout in space.ask(5).handouts}
    assert again == {first.row.host: "b", second.row.host: "a"}
