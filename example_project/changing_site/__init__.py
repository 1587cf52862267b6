"""A small Scrapy project that recrawls a changing site with `optimal_frontier`."""
