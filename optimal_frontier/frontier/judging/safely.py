"""Judging that ends every lease: what is stored of a page may be damaged in ways that nobody has thought of."""

from __future__ import annotations

import logging
from dataclasses import replace

from optimal_frontier.frontier.judging.judge import judge
from optimal_frontier.frontier.judging.judgement import Context
from optimal_frontier.frontier.judging.outcomes import RELEASED
from optimal_frontier.frontier.judging.visits import Visit
from optimal_frontier.state.memory import NOTHING_REMEMBERED
from optimal_frontier.state.messages import RELEASE, Handout, Observation

logger = logging.getLogger(__name__)


def aside(handout: Handout, reason: str) -> Observation:
    """Return the observation of a page that is put aside."""
    return Observation(handout, RELEASE, handout.row, outcome=RELEASED, aside=reason)


def judged_safely(handout: Handout, visit: Visit, context: Context) -> Observation:
    """Return the observation of a visit: as `judge` has it; where that fails, without what is remembered; else the page is put aside."""
    try:
        return judge(handout, visit, context)
    except Exception as error:
        logger.debug("a visit could not be judged", exc_info=True)
        reason = f"its visit cannot be judged: {error!r}"
    try:
        forgetful = replace(handout, memory=NOTHING_REMEMBERED)
        observation = judge(forgetful, visit, context)
    except Exception:
        return aside(handout, reason)
    return replace(observation, handout=handout, memory=observation.memory or NOTHING_REMEMBERED)
