"""What a plan publishes is read by one rule: a field that is none of it counts as not there."""

from __future__ import annotations

from each_value import each
from timed_namespace import TimedNamespace

from optimal_frontier.state.mending import mend
from optimal_frontier.state.published import Published, is_sound_field, sound_fields

SOUND = {
    "policy": "periodic",
    "planner": "host:1",
    "explores": "0",
    "share": "0.5",
    "first_visit_rate": "inf",
    "log_price": "-inf",
    "number": "7",
    "time": "2000000000.5",
    "pages": "12",
    "extra_fetches": "-1",
    "prior_time": "30.0",
    "exploration_rounds": "3.0",
    "exploration_number": "2",
    "measured_rate": "1.5",
}
BROKEN = {
    "share": "nan",
    "log_price": "x",
    "number": "inf",
    "time": "9" * 23,
    "first_time": "-inf",
    "measured_at": "1e300",
    "prior_time": "9" * 23,
    "pages": "1.5",
    "fetched": "9" * 400,
    "measured_fetches": "9" * 5000,
    "exploration_bits": "",
    "exploration_number": "inf",
    "given_up": "1e400",
    "measured_rate": "nan",
    "budget": "",
    "stretch": "²",
}


@each("name", SOUND)
def test_what_plans_publish_is_read(name):
    assert is_sound_field(name, SOUND[name])


@each("name", BROKEN)
def test_what_no_plan_publishes_is_not(name):
    """Of bytes the same is told as of a text."""
    assert not is_sound_field(name, BROKEN[name])
    assert not is_sound_field(name, BROKEN[name].encode())


def test_a_plan_is_read_without_damaged_fields():
    assert sound_fields(SOUND) == SOUND
    assert Published.parse(SOUND | BROKEN, None, None) == Published.parse(
        {name: value for name, value in SOUND.items() if name not in BROKEN}, None, None
    )


def test_they_are_mended_by_the_same_rule(space: TimedNamespace):
    fields = SOUND | BROKEN
    space.command("HSET", space.key("plan"), *(word for pair in fields.items() for word in pair))
    assert len(mend(space)) == len(BROKEN)
    assert space.hash("plan") == sound_fields(fields)
