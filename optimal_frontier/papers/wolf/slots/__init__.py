"""Crawls with ideal times -> crawlers and slots, at least total distance in time."""

from optimal_frontier.papers.wolf.slots.assigning import assign_slots

__all__ = ["assign_slots"]
