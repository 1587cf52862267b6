"""A page that moved for good, and is gone where it moved to: it gets its former URL back, and is asked for there, before it stays retired.

What it was called last is tried first, with all that is known of the page. If that leads to where it is gone, it is retired under that
name, or tries the name before.
"""

from __future__ import annotations

from optimal_frontier.frontier.admitting.pages import moved_record, new_page
from optimal_frontier.frontier.admitting.revival import brought_back
from optimal_frontier.frontier.judging.moved_pages import rebounded
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.aliases import pack_alias, point, split_alias
from optimal_frontier.state.messages import REST, Observation
from optimal_frontier.state.namespace import Call, Namespace
from optimal_frontier.state.partition import revise_calls
from optimal_frontier.state.rows import RETIRED, pack_tail
from optimal_frontier.state.steps import side_by_side

#: Counter of pages that got a former URL back.
COUNTER = "moved_back"


def has_former_name(observation: Observation) -> bool:
    """Tell whether a visit has retired a page that was called otherwise before."""
    memory = observation.memory or observation.handout.memory
    return observation.op == REST and observation.row.state == RETIRED and bool(memory.aliases)


def give_back(namespace: Namespace, settings: FrontierSettings, observation: Observation) -> bool:
    """Give a page its former name back; False if that name is another page's by now, or cannot be read.

    Notes
    -----
    The page that is gone stays known, and retired: whatever leads there finds that. Its earlier names are those of the one that is back.
    """
    memory = observation.memory or observation.handout.memory
    *earlier, last = memory.aliases
    partition, page = split_alias(last)
    if partition >= namespace.partitions:
        return False
    raw = namespace.command("HGET", namespace.key("aliases", partition), page, partition=partition)
    handout = observation.handout
    here = pack_alias(handout.partition, handout.page)
    if raw is None or not raw.startswith(here):
        return False
    url = raw[len(here) :].decode("utf-8", "surrogatepass")
    try:
        back = new_page(settings, page, url, moved_record(handout.record, url), importance=handout.stated or None)
    except ValueError:
        return False
    row = rebounded(brought_back(observation.row, namespace.now(partition)), back.row)
    row = row._replace(pattern=back.row.pattern, directory=back.row.directory)
    # Validators are those of another address.
    kept = memory._replace(aliases=tuple(earlier), etag=b"", last_modified=b"", size=0, lastmod=None, signals=())
    tail = pack_tail(back.stated, back.record)
    (reply,) = namespace.run([Call(partition, "adopt", [page, back.host, row.pack(), tail, kept.pack()])])
    if reply != 1:
        return False
    alone = memory._replace(aliases=())
    namespace.run(revise_calls(handout.partition, [(handout.page, observation.row.b, observation.row, alone)], f"{COUNTER}=1"))
    known = [name for name in earlier if split_alias(name)[0] < namespace.partitions]
    side_by_side(namespace, [point(known, (partition, page))])
    return True
