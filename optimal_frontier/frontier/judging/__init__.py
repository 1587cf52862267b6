"""The judge: from a handout and what came back to the observation that is stored. `judge.judge` is the way in."""
