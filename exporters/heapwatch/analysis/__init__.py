"""What a leak is: trends, verdicts and limits."""
