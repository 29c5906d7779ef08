"""What a leak is: the words of a verdict, the definition of the rules, limits."""
