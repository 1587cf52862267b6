"""How many crawls should each page get in a scheduling interval? Whole numbers, whatever the pages' update models."""

from optimal_frontier.papers.wolf.allocation.allocating import allocate_crawls

__all__ = ["allocate_crawls"]
