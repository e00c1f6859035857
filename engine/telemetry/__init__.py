"""What a running process lets be seen."""
