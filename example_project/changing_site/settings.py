"""Settings of the example: one line wires optimal_frontier, the rest fits it to a site that changes within seconds."""

BOT_NAME = "changing_site"
SPIDER_MODULES = ["changing_site.spiders"]
NEWSPIDER_MODULE = "changing_site.spiders"

# The one line that a project needs.
ADDONS = {"optimal_frontier.Addon": 500}

# Fetches per second, over all hosts: the budget that optimal_frontier spends as well as it can.
OPTIMAL_FRONTIER_CRAWL_RATE = 50
# A run lasts 90 s, so what was learned has to reach the plan within seconds (default: 60).
OPTIMAL_FRONTIER_RESOLVE_INTERVAL = 2.0
# The hottest pages change twice a second; the default of one second between two visits would bind.
OPTIMAL_FRONTIER_MIN_INTERVAL = 0.1
# Nothing can be kept fresh before it was found: let the first seconds go to discovery.
OPTIMAL_FRONTIER_DISCOVERY_SHARE = 0.8

# The "hosts" are ports of 127.0.0.1, which Scrapy's downloader takes for one domain.
CONCURRENT_REQUESTS = 32
CONCURRENT_REQUESTS_PER_DOMAIN = 32
DOWNLOAD_DELAY = 0
DOWNLOAD_TIMEOUT = 10
ROBOTSTXT_OBEY = False
USER_AGENT = "changing_site (example of optimal_frontier, loopback only)"

LOG_LEVEL = "WARNING"
TELNETCONSOLE_ENABLED = False
