"""The judge: from a handout and what came back to the observation that is stored. Pure but for `Context.recent`.

Each behaviour is a function of the module that has its name; here they are called in their order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from optimal_frontier.estimation.validator_trust import ValidatorTrust
from optimal_frontier.frontier.admitting.hosts import host_of
from optimal_frontier.frontier.admitting.pages import directory_number
from optimal_frontier.frontier.judging import callback_errors, update_times, validators
from optimal_frontier.frontier.judging.ages import Note, after_checks, learn_at_first, words_of
from optimal_frontier.frontier.judging.block_pages import name_of
from optimal_frontier.frontier.judging.canonical import refusal_of
from optimal_frontier.frontier.judging.fetched_once import is_page, is_tried_again, tried_again
from optimal_frontier.frontier.judging.fingerprinting import Fingerprint
from optimal_frontier.frontier.judging.gone import after_good, judge_gone
from optimal_frontier.frontier.judging.hubs import worth_of
from optimal_frontier.frontier.judging.judgement import Context, Judgement
from optimal_frontier.frontier.judging.learning import FORGOTTEN, change_bit, learn_bit, learn_signalled_bit
from optimal_frontier.frontier.judging.moves import is_sent_home
from optimal_frontier.frontier.judging.noise import QUICK_S, PageNoise, after_template_change, noise_of_memory, notice
from optimal_frontier.frontier.judging.outcomes import BLOCKED, CAUSES, RELEASED, SENT_HOME, TRUNCATED, cause_of, counters_of, outcome_of
from optimal_frontier.frontier.judging.shared_noise import kind_of, learned_noise
from optimal_frontier.frontier.judging.visits import NOT_MODIFIED, Visit
from optimal_frontier.frontier.judging.waits import Terms, change_rate_of, interval_of, interval_of_judged
from optimal_frontier.frontier.judging.young import birth_after, lived
from optimal_frontier.state.messages import DROP, RELEASE, REST, Change, Handout, Observation
from optimal_frontier.state.rows import (
    ACTIVE,
    APPEARED,
    CHECKED,
    DONE,
    HELD,
    HUB,
    MOST_FAILED,
    MOST_IN_A_ROW,
    ONCE,
    OWN,
    RETIRED,
    TRANSIENT,
    UNCONDITIONAL,
)

__all__ = ["NOTHING_KNOWN", "Context", "conditions_of", "is_last_content", "judge", "told"]

#: What callbacks read of requests that are no pages.
NOTHING_KNOWN: Final = {"changed": None, "change_rate": None, "interval": None, "visits": 1}

_WORD: Final = 0xFFFFFFFF


def judge(handout: Handout, visit: Visit, context: Context) -> Observation:
    """Return the observation of a visit.

    Parameters
    ----------
    handout : Handout
        The lease that it ends.
    visit : Visit
        What came of the fetch.
    context : Context
        Settings, the last plan, and what this process remembers, which is all that is changed.
    """
    if visit.error == RELEASED:
        return Observation(handout, RELEASE, handout.row, outcome=RELEASED)
    observation = _page(handout, visit, context) if is_page(handout, context.settings) else _request(handout, visit)
    # Where a crawl is to end each page is owed its attempt.
    if context.settings.close_after is None and not visit.shows_nothing_new:
        observation.hold = _hold_of_silent(handout, visit, context)
    return observation


def _hold_of_silent(handout: Handout, visit: Visit, context: Context) -> float:
    """Return for how many seconds the host is left alone, as it does not answer.

    A redirect is an answer; whether the host that it leads to does, the pages of that one tell.
    """
    if visit.error and visit.found and host_of(visit.found) != handout.host:
        return context.recent.silent_hosts.after(handout.host, "", handout.received, handout.received)
    return context.recent.silent_hosts.after(handout.host, visit.error, handout.received, visit.responded)


def _page(handout: Handout, visit: Visit, context: Context) -> Observation:
    """Return the observation of a visit to a page."""
    judgement = Judgement.of(handout, visit, context)
    if handout.row.state == ONCE:
        judgement.count("pages")
        judgement.count("fetched", handout.row.visits > 0)
    if handout.row.attempts == 0:
        judgement.count("pending", -1)
    if handout.row.flags & HELD:
        judgement.count("held", -1)
    error = visit.error or _disguise(judgement)
    if error:
        _failed(judgement, error)
    else:
        _seen(judgement)
    return judgement.observation()


def conditions_of(handout: Handout, tag: int, context: Context) -> validators.Validators | None:
    """Return what to ask with, or None for a plain request; ``tag`` of the page's `fingerprinting.Way`."""
    row = handout.row
    # Of a block page nobody wants to know whether it is still the same; what comes in its place leaves validators.
    if not context.settings.conditional_get or context.recent.blocks.is_flagged(handout.host, row.content):
        return None
    # A second fetch that is to be compared with the first one.
    if row.flags & CHECKED and handout.memory.noise and PageNoise.unpack(handout.memory.noise).is_for_pattern:
        return None
    # Fingerprints of what has no sections have the tag of their way, also where pages like it share noise.
    return validators.conditions_of(handout, tag if row.tag == tag else context.recent.noise.tag_of(kind_of(handout, tag)))


def is_last_content(handout: Handout, visit: Visit, context: Context) -> bool:
    """Tell whether a response has the content that was last judged."""
    return visit.fingerprint is not None and change_bit(handout.row, _without_noise(handout, visit, visit.fingerprint, context)) == 0


def told(handout: Handout, observation: Observation | None, context: Context) -> dict[str, Any]:
    """Return what the callback reads in ``response.meta["optimal_frontier"]``; of a visit that failed, what was known before it."""
    if handout.row.state in (ONCE, TRANSIENT, DONE):
        return dict(NOTHING_KNOWN)
    is_seen = observation is not None and observation.outcome == "ok"
    row = observation.row if observation is not None and is_seen else handout.row
    settings = context.settings
    terms = Terms(handout.log_price, context.published, settings)
    interval = interval_of_judged(row, terms) if is_seen else None
    if interval is None:
        memory = (observation.memory if observation is not None else None) or handout.memory
        timetable = settings.rules.of(handout.record["url"]).update_times
        if timetable is None:
            interval = interval_of(row, terms, worth_of(memory, settings) if row.flags & HUB else 0.0)
        else:
            interval = update_times.interval_of_timed(update_times.republished(timetable, memory), row, terms)
    return {
        "changed": callback_errors.change_told(handout, observation),
        "change_rate": change_rate_of(row, context.published),
        "interval": interval if row.state == ACTIVE else None,
        "visits": row.visits,
    }


def _request(handout: Handout, visit: Visit) -> Observation:
    """End a request that is fetched once: afterwards it is known, or forgotten. One that fails may be tried again."""
    row, error = handout.row, visit.error
    counters = counters_of(error)
    if row.attempts == 0:
        counters["pending"] = -1
    if row.flags & HELD:
        counters["held"] = -1
    if row.state == TRANSIENT:
        return Observation(handout, DROP, row, counters=counters, outcome=outcome_of(error))
    b = max(float(round(handout.server_time(visit.responded) * 1e6)), row.b + 1.0)
    visits, failed = row.visits + (not error), min(row.failed + bool(error), MOST_FAILED)
    failures, cause = min(row.failures + 1, MOST_IN_A_ROW) if error else 0, CAUSES.index(cause_of(error))
    ended = row._replace(state=DONE, flags=0, b=b, visits=visits, failed=failed, failures=failures, cause=cause)
    observation = Observation(handout, REST, ended, counters=counters, outcome=outcome_of(error))
    if handout.memory.lost is not None:
        return callback_errors.fetched_once_more(observation)
    return tried_again(observation) if error and not visit.is_taken and is_tried_again(observation) else observation


def _disguise(judgement: Judgement) -> str:
    """Find out by its content, or by where it comes from, that a good response is none; return its error, empty for most."""
    handout, visit, blocks = judgement.handout, judgement.visit, judgement.context.recent.blocks
    # Only a page that has answered at its own address: another may be the way in which the home page is known.
    if visit.hops and handout.row.flags & OWN and is_sent_home(str(handout.record["url"]), visit.found):
        return SENT_HOME
    if visit.fingerprint is None or (visit.status == NOT_MODIFIED and not visit.is_cached):
        return ""
    found = judgement.found = _without_noise(handout, visit, visit.fingerprint, judgement.context)
    judgement.raw_bit = change_bit(handout.row, found)
    # Without a length nobody knows whether the end is missing: what differs is looked at again before it counts.
    if visit.is_partial and judgement.raw_bit == 1 and handout.row.failures == 0:
        return TRUNCATED
    digest = visit.fingerprint.digest
    # Without its noise a page may well be what others are.
    if digest is None or (found is not visit.fingerprint and judgement.raw_bit != 1 and not blocks.is_flagged(handout.host, digest)):
        return ""
    is_flagged, is_news = blocks.judge(handout, digest, found.tag)
    if is_news:
        judgement.flag = name_of(handout.host, digest)
        judgement.count("contents_flagged")
    return BLOCKED if is_flagged else ""


def _without_noise(handout: Handout, visit: Visit, found: Fingerprint, context: Context) -> Fingerprint:
    """Return the fingerprint of a page without the noise that it shares with others."""
    if found.digest is None or visit.sections is None or visit.source:
        return found
    return context.recent.noise.without(kind_of(handout, found.tag), found, visit.sections)


def _failed(judgement: Judgement, error: str) -> None:
    """Take in a visit that shows nothing of the page."""
    row, fields = judgement.handout.row, judgement.fields
    judgement.outcome = outcome = outcome_of(error)
    failures, gone = min(row.failures + 1, MOST_IN_A_ROW), 0
    judgement.count("failures")
    judgement.count(f"failures_{outcome}")
    for name, by in counters_of(error).items():
        judgement.count(name, by)
    if outcome == "gone":
        gone = min(row.gone + 1, MOST_IN_A_ROW)
        verdict = judge_gone(judgement.words, row.visits, gone, failures)
        judgement.words, failures, judgement.brings_back = verdict.words, verdict.failures, verdict.brings_back
        if verdict.is_held:
            judgement.count("gone_held")
        if verdict.is_retired and fields["state"] == ACTIVE:
            fields["state"] = RETIRED
            judgement.count("retired")
            callback_errors.settle(judgement)
    fields["failed"] = min(row.failed + 1, MOST_FAILED)
    fields["failures"], fields["gone"], fields["cause"] = failures, gone, CAUSES.index(cause_of(error))
    fields["unseen"] = max(judgement.interval, 0.0)


def _seen(judgement: Judgement) -> None:
    """Take in a good response."""
    row, visit, fields = judgement.handout.row, judgement.visit, judgement.fields
    judgement.count("visits")
    if row.visits == 0:
        judgement.count("fetched")
    fields["visits"] = row.visits + 1
    fields["failures"] = fields["gone"] = fields["cause"] = 0
    fields["unseen"] = 0.0
    if row.directory == 0:  # it came with an export that told none
        fields["directory"] = directory_number(str(judgement.handout.record["url"]))
    judgement.words = after_good(judgement.words)
    if visit.source in ("damaged", "unreadable"):
        judgement.count(f"sources_{visit.source}")
    found = judgement.found
    if visit.status == NOT_MODIFIED and row.visits and not visit.is_cached:
        found, judgement.raw_bit = Fingerprint(row.content, row.tag), 0 if row.tag else -1
    if found is not None:
        for name, by in found.counters.items():
            judgement.count(name, by)
    if visit.shows_nothing_new:
        fields["unseen"] = max(judgement.interval, 0.0)
        return
    fields["flags"] = fields["flags"] & ~(UNCONDITIONAL | OWN) | (0 if visit.found else OWN)
    callback_errors.settle(judgement)
    if row.flags & APPEARED:
        birth = birth_after(row, judgement.handout.memory.birth, judgement.at, judgement.context.published)
        judgement.remembered["birth"] = birth
        if birth is None:
            fields["flags"] &= ~APPEARED
    if found is None or visit.source == "unreadable":
        return
    if found.digest is None:
        # The next bit is about all of the time since the fingerprint that is stored.
        fields["unseen"] = max(judgement.interval, 0.0)
    is_noise = _decide_bit(judgement)
    _learn(judgement)
    if is_noise:
        fields |= FORGOTTEN
    if found.digest is not None:
        _take_over_content(judgement, found.digest, found.tag)
        _note_validators(judgement)
    _follow(judgement)


def _decide_bit(judgement: Judgement) -> bool:
    """Decide whether the page has changed; return whether what was learned so far was learned from noise."""
    handout, visit = judgement.handout, judgement.visit
    row, recent = handout.row, judgement.context.recent
    judgement.bit = judgement.raw_bit
    if row.tag and recent.blocks.is_flagged(handout.host, row.content):
        judgement.bit = -1  # a page that comes back from behind a block page shows no change
        return False
    if _is_of_template(judgement):
        judgement.bit = 0
        judgement.count("template_changes")
        if handout.memory.noise and visit.sections is not None:
            judgement.remembered["noise"] = after_template_change(handout.memory.noise, visit.sections())
        return False
    if visit.source or visit.is_not_modified:
        return False
    return _decide_by_sections(judgement)


def _decide_by_sections(judgement: Judgement) -> bool:
    """Overrule the bit of a page by its sections, where it may have noise, of its own or as others have; return as `_decide_bit` does."""
    handout, visit, noise = judgement.handout, judgement.visit, judgement.context.recent.noise
    row, found, whole = handout.row, judgement.found, visit.fingerprint
    if visit.sections is None or found is None or whole is None:
        return False
    kind, changed = kind_of(handout, whole.tag), judgement.bit == 1
    # Where nothing is left of a page there is no bit, but what is left out is to be checked.
    is_empty = found.digest is None and whole.digest is not None and row.visits > 0
    interval = judgement.interval - row.unseen if is_empty else judgement.interval
    if (judgement.bit >= 0 or is_empty) and interval > QUICK_S:
        noise.note(kind, handout.page, changed)
    is_other = found.tag not in (whole.tag, row.tag)
    if is_other and not is_empty:
        # What it shares with others is left out from now on.
        if (kept := noise_of_memory(handout.memory)) is not None:
            judgement.remembered["noise"] = b""
            judgement.count("noisy_calmed", int(kept.is_noisy))
        return learned_noise(row)
    # Nothing to look at: most pages.
    if not handout.memory.noise and not is_empty and (judgement.bit < 0 or (judgement.bit == 0 and found is whole)):
        return False
    noticed = notice(
        row._replace(min_interval=judgement.shortest, max_interval=judgement.fields["max_interval"]),
        handout.memory.noise,
        0 if is_empty else judgement.bit,
        interval,
        visit.sections,
        judgement.context.published.prior_time,
        lambda: noise.asks(kind, changed),
    )
    judgement.bit, judgement.again = -1 if is_empty else noticed.bit, noticed.again
    if noticed.pair is not None:
        judgement.flag = judgement.flag or noise.tally(kind, handout, noticed.pair, judgement.at)
    judgement.remembered["noise"] = noticed.remembered
    for name, by in noticed.counters.items():
        judgement.count(name, by)
    return noticed.forgets or (is_other and learned_noise(row))


def _is_of_template(judgement: Judgement) -> bool:
    """Tell whether the page has changed by nothing but the template that it shares with other pages of its host."""
    handout, visit, context = judgement.handout, judgement.visit, judgement.context
    if judgement.bit < 0 or context.settings.template_changes == "count":
        return False
    found = judgement.found
    # A 304 is an unchanged page like any other: it says that what others show is not of the template.
    content = handout.row.content if visit.is_not_modified else found.digest if found is not None and found.is_summed else None
    if content is None:
        return False
    is_template, name = context.recent.templates.judge(handout, content, judgement.at, judgement.bit == 1)
    if name:
        judgement.flag = name
        judgement.count("template_events")
    return is_template


def _learn(judgement: Judgement) -> None:
    """Learn of the bit, or of a first visit."""
    handout, fields, bit, interval = judgement.handout, judgement.fields, judgement.bit, judgement.interval
    row, age = handout.row, judgement.visit.age
    if bit >= 0:
        fields["observations"], fields["changes"] = row.observations + 1, row.changes + bit
        fields["bits"] = (row.bits << 1 | bit) & _WORD
        judgement.count("observations")
        if bit:
            judgement.count("changes")
        timetable = judgement.rule.update_times
        if timetable is not None:
            page = update_times.learn_bit(
                update_times.republished(timetable, handout.memory), judgement.at - interval, judgement.at, bool(bit)
            )
            judgement.republished = page
            judgement.remembered["betas"], judgement.remembered["timetable"] = page.betas, update_times.key_of(timetable)
    notes: list[Note] = []
    prior = judgement.context.published.prior_of(row.pattern)
    if bit >= 0 and interval > 0:
        unseen = validators.unseen_s(handout, bit, interval)
        heard, recall = judgement.hear(prior)
        if recall is None:
            fields["shape"], fields["time"] = learn_signalled_bit(row, interval, unseen, bool(bit), prior, heard)
            return
        said = words_of(judgement.words, age, handout.memory.lastmod, handout.at, judgement.at) if recall <= 0.0 else []
        later = lived(row, handout.memory.birth, judgement.at, interval, judgement.context.published)
        if later > interval:
            # Dates are of the calendar, and say nothing of later life.
            interval, said = later, []
        learned, notes = learn_bit(row, interval, unseen, bool(bit), prior, said, recall)
        fields |= learned._asdict()
        if learned.relearned > row.relearned:
            judgement.count("relearned")
    elif row.visits == 0 and prior is not None:
        found = judgement.found
        said = words_of(
            judgement.words, None if found is None or found.digest is None else age, handout.memory.lastmod, handout.at, judgement.at
        )
        first = learn_at_first(*prior, said)
        if first is not None:
            fields["shape"], fields["time"], notes = first
    judgement.words = after_checks(judgement.words, notes, bit == 1)
    for note in notes:
        if note.use:
            judgement.count("ages" if note.use == "used" else "ages_distrusted")


def _take_over_content(judgement: Judgement, digest: bytes, tag: int) -> None:
    """Keep the fingerprint, and tell of a change; while the page is unchanged the stored one stays, or small differences would add up."""
    handout, fields = judgement.handout, judgement.fields
    row = handout.row
    fields["tag"] = tag
    if judgement.raw_bit != 0:
        fields["content"] = digest
    if judgement.bit == 1:
        judgement.change = Change(handout.record["url"], row.content, digest)


def _note_validators(judgement: Judgement) -> None:
    """Keep what the next fetch can ask with, and what the answer says of the host's 304s."""
    handout, visit, fields = judgement.handout, judgement.visit, judgement.fields
    row = handout.row
    if visit.is_cached:
        if visit.status == NOT_MODIFIED:
            judgement.count("not_modified")
            judgement.count("bytes_saved", visit.size)
        return
    shape, time = fields.get("shape", row.shape), fields.get("time", row.time)
    seen = validators.Seen(judgement.bit, judgement.interval, shape, time, judgement.shortest)
    if visit.status == NOT_MODIFIED:
        if visit.asked is None:
            return
        left = validators.after_not_modified(seen, handout, visit.asked, visit.validators)
        judgement.count("not_modified")
        judgement.count("bytes_saved", handout.memory.size)
    else:
        left = validators.after_full_answer(seen, handout, visit.asked, visit.validators, visit.size)
    judgement.remembered |= left.memory
    judgement.again = judgement.again or left.again
    if left.check is not None:
        score, told_, checks, lies = ValidatorTrust(*judgement.words.validators).after(*left.check)
        judgement.words = judgement.words._replace(validators=(score, told_, checks, lies))
        if left.check[0] == "lies":
            judgement.count("validator_lies")


def _follow(judgement: Judgement) -> None:
    """Note where the page is from now on: where it was sent for good, or what it names as its canonical form."""
    visit, context = judgement.visit, judgement.context
    if visit.status == NOT_MODIFIED or not (visit.hops or visit.canonical):
        return
    asked = str(judgement.handout.record["url"])
    judgement.moved, is_held = context.recent.moves.target(asked, visit.found or asked, visit.hops)
    if is_held:
        judgement.count("moves_held")
    # Elsewhere it is the word of the page that it was sent to.
    if not context.settings.canonical_links or not visit.canonical or judgement.moved or visit.found not in ("", asked):
        return
    refused = refusal_of(asked, visit.canonical, context.settings.url_limits)
    if refused:
        judgement.count(refused)
    else:
        judgement.moved, judgement.is_canonical = visit.canonical, True


def is_news(observation: Observation) -> bool:
    """Tell whether a good response is for the callback where CALLBACK_ON is ``change``: all but an unchanged page and a block page are."""
    if observation.outcome != "ok":
        return False
    return observation.bit != 0 or bool(observation.handout.row.flags & UNCONDITIONAL)


def after_entries(observation: Observation, remembered: bytes | None) -> Observation:
    """Return the observation of a source whose entries were passed on.

    Parameters
    ----------
    observation : Observation
        As judged.
    remembered : bytes or None
        What to keep of the entries for the next visit; None: not all of them were passed on. What was not is news again, and must not be
        hidden by a 304.
    """
    kept = observation.memory or observation.handout.memory
    if remembered is None:
        return replace(observation, memory=kept._replace(etag=b"", last_modified=b""))
    return replace(observation, memory=kept._replace(entries=remembered))
