"""A site that misbehaves, and the crawl of it: see `benchmarks/misbehaving_crawl.py`."""
