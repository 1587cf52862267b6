"""Azar et al. 2018, "Tractable near-optimal policies for crawling": Problem 1, Algorithm 3, figures 1 and 2."""
