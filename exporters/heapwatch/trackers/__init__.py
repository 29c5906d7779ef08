"""Memory in the experiment tracker that a trainer already uses: one module a tracker, imported when used."""
