"""What the example measures itself with: the world, the site that serves it, the report and the plot; no part of the crawler."""
