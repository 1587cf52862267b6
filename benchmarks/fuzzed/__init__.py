"""What `benchmarks/fuzzing.py` crawls."""
