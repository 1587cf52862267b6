"""The runtime companion of a request that was handed out under a lease."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final, Self

from optimal_frontier.detection.source_documents import Source
from optimal_frontier.frontier.admitting.hosts import names_of
from optimal_frontier.frontier.judging.validators import Validators
from optimal_frontier.frontier.judging.visits import Visit
from optimal_frontier.state.messages import Handout, Observation

#: Where it stands in ``request.meta``; redirect and retry copies of the request carry it on. Never stored.
LEASE: Final = "_optimal_frontier_lease"
#: In the meta of a request that a source yields: its `Announcement`. Not stored with the request.
ANNOUNCED: Final = "_optimal_frontier_announced"
#: Where the companion of a request stands that is fetched from memory: see `local_requests`. Never stored.
LOCAL: Final = "_optimal_frontier_local"
#: In the meta of a request: nothing stored is handed out before it has ended. Not stored with the request.
GATE: Final = "frontier_gate"
#: What callbacks read in ``response.meta``.
META: Final = "optimal_frontier"


class Companion(dict[str, Any]):
    """What goes with a request of this process, in its meta.

    To whoever copies, prints or stores ``response.meta`` it is an empty dict: a feed would lose an item that has what cannot be stored.
    """

    __eq__, __ne__ = object.__eq__, object.__ne__
    __hash__ = object.__hash__  # type: ignore[assignment]  # a dict has none

    def __bool__(self) -> bool:
        return True

    def __deepcopy__(self, memo: object) -> Self:
        """Return itself: a spider that copies ``response.meta`` in depth wants no copy of what it leads to, and most of that has none."""
        return self

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[()]]:
        return dict, ()


def forget_copies(meta: dict[Any, Any]) -> None:
    """Take out of ``meta`` the empty dict that is left of a companion where the meta of a response was stored, and read again."""
    for name in (LEASE, LOCAL):
        if type(meta.get(name)) is dict:
            del meta[name]


@dataclass(eq=False, repr=False)
class Lease(Companion):
    """What happens to a leased request on its way through Scrapy.

    Attributes
    ----------
    handout : Handout
        From the dispatcher.
    frontier_request : frontera Request
        As it came through Frontera's manager.
    request : scrapy Request
        The latest copy (redirects and retries replace it).
    handed : bool
        The engine has that copy; while it is being processed the lease lives.
    reached : bool
        It reached the downloader; a later copy that does so is a further fetch.
    began, responded : float
        Local monotonic times of the last start of a download and of the last response, body included, seconds; 0: none yet.
    waits_since : float
        Local monotonic time at which it was first seen to wait for a slot, seconds; 0: it was not.
    lateness : float or None
        Seconds from the deadline to the start of its first download.
    response : scrapy Response or None
        The final one.
    visit : Visit or None
        What the final response says.
    observation : Observation or None
        What the judge made of that.
    error : str
        Why the download failed, if it did.
    is_lost : bool
        The lease is held no more: what was not sent yet is not to be.
    added : frozenset of str
        Names that we put into the request's meta, for this fetch only.
    asked : Validators or None
        What it was asked with, for this fetch only, by the request for ``asked_url``; redirected copies go without.
    source : Source or None
        What was read of the response, if the page is a source.
    status, size : int
        Of the last response that was downloaded: its status, and the bytes of its body as they came.
    packed : bytes
        The body of that response as it came, where gzip has packed it.
    children : int
        Requests found on the page that this process fetches from memory: the page is not done before they are.
    session : int
        Number of the log-in that it was handed out in.
    is_given_back : bool
        Its response does not count: the session had ended.
    anew : int
        Requests that middlewares have made anew in its place.
    next_copy : scrapy Request or None
        The copy (of a redirect or retry) that the engine was given last; it becomes ``request`` once it is scheduled.
    """

    handout: Handout
    frontier_request: Any
    request: Any
    handed: bool = False
    reached: bool = False
    began: float = 0.0
    responded: float = 0.0
    waits_since: float = 0.0
    lateness: float | None = None
    response: Any = None
    visit: Visit | None = None
    observation: Observation | None = None
    error: str = ""
    is_lost: bool = False
    added: frozenset[str] = frozenset()
    asked: Validators | None = None
    asked_url: str = ""
    status: int = 0
    size: int = 0
    packed: bytes = b""
    source: Source | None = None
    children: int = 0
    session: int = 0
    is_given_back: bool = False
    anew: int = 0
    next_copy: Any = None

    def leave_to_plans(self) -> None:
        """Have nobody send its request again at once."""
        if "dont_retry" not in self.request.meta:
            self.request.meta["dont_retry"] = True
            self.added |= {"dont_retry"}

    def note_start(self) -> None:
        """Note that a download begins."""
        self.began = time.monotonic()
        if self.lateness is None and self.handout.lateness is not None:
            self.lateness = self.handout.lateness + self.began - self.handout.received

    def forget_answer(self) -> None:
        """Be as it was before the answer: the engine does not get it."""
        self.response = self.visit = self.observation = None
        self.error = ""

    @property
    def is_turned_away(self) -> bool:
        """A handler of ``request_scheduled`` has refused its next copy, as Scrapy's does with redirects out of ``allowed_domains``."""
        return self.next_copy is not None and self.next_copy is not self.request

    @property
    def took_s(self) -> float:
        """Seconds that its last download took, or takes so far; 0: none has begun."""
        if not self.began:
            return 0.0
        return (self.responded if self.is_answered else time.monotonic()) - self.began

    @property
    def is_answered(self) -> bool:
        """Its last download has brought a response."""
        return self.responded > self.began

    @property
    def slot(self) -> str:
        """The slot of the downloader that it has or, while it has none, will have."""
        return str(self.request.meta.get("download_slot") or names_of(self.request.url)[0])

    @property
    def is_waiting(self) -> bool:
        """The downloader has taken it, and no slot has yet: it waits for robots.txt, or for another middleware."""
        return self.handed and not self.began and not self.is_judged and "download_slot" not in self.request.meta

    def look_s(self) -> float:
        """Return the seconds for which it has been downloaded so far; of one that waits for a slot those since it was first seen to."""
        if not self.is_waiting:
            return self.took_s
        self.waits_since = self.waits_since or time.monotonic()
        return time.monotonic() - self.waits_since

    @property
    def is_judged(self) -> bool:
        """The engine has what it gets; a later copy of the request is the spider's, not a redirect or retry."""
        return self.response is not None or bool(self.error)
