"""What one crawler process remembers from visit to visit: contents and templates of hosts, targets of redirects, what was found out."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from optimal_frontier.frontier.judging.block_pages import BlockPages
from optimal_frontier.frontier.judging.moves import Moves
from optimal_frontier.frontier.judging.shared_noise import SharedNoise
from optimal_frontier.frontier.judging.silent_hosts import SilentHosts
from optimal_frontier.frontier.judging.source_worths import SourceWorths
from optimal_frontier.frontier.judging.template_events import TemplateEvents
from optimal_frontier.state.host_words import HostWords
from optimal_frontier.state.messages import Handout

#: Hosts whose words are remembered.
_MOST_HOSTS: Final = 4_000
#: Seconds for which an observation may be under way to the server: what was found out so long before a handout may not be in it.
_UNDER_WAY_S: Final = 1.0


class Recent:
    """The process-wide memory of judging; the only thing that `judge` changes. One for each crawler process.

    One thread judges. The courier's tells it what Redis knows, by ``learn``, and takes the lessons of sources.

    Attributes
    ----------
    blocks : BlockPages
        Contents that are no page's own.
    moves : Moves
        Where permanent redirects lead.
    noise : SharedNoise
        What differs within seconds on pages of one kind.
    silent_hosts : SilentHosts
        Hosts that do not answer; the courier's thread lists them, too.
    sources : SourceWorths
        What sources of signals are worth.
    templates : TemplateEvents
        What changed on most pages of a host at once.
    """

    def __init__(self) -> None:
        self.blocks = BlockPages()
        self.moves = Moves()
        self.noise = SharedNoise()
        self.silent_hosts = SilentHosts()
        self.sources = SourceWorths()
        self.templates = TemplateEvents()
        self._words: OrderedDict[str, tuple[float, HostWords]] = OrderedDict()

    def words_of(self, handout: Handout) -> HostWords:
        """Return what is known of a page's host: what came with it, or what was found out since at other pages of the host."""
        found = self._words.get(handout.host)
        return found[1] if found is not None and found[0] >= handout.received - _UNDER_WAY_S else handout.words

    def learn_words(self, handout: Handout, responded: float, words: HostWords) -> None:
        """Remember what a visit has found out of a host; ``responded``: its local monotonic time, seconds."""
        self._words[handout.host] = responded, words
        self._words.move_to_end(handout.host)
        if len(self._words) > _MOST_HOSTS:
            self._words.popitem(last=False)
