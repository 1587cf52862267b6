"""The interface of the crawlfrontier documents: `OptimalSolver`, `WCluster`, `golden_section_search`."""
