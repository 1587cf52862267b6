"""Upadhyay et al. 2020, "Learning to crawl": the moment estimator and its bound, figure 2, the regret of exploring."""
