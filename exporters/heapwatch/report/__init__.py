"""What a run's series say after the fact: recorded, read back, judged and written down."""
