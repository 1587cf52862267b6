"""Wolf et al. 2002, "Optimal crawling strategies for web search engines": update models, crawls, slots, embarrassment, figures 7 to 10."""
