"""The zoo as unit tests: each case and its twin under the marker or fixture of three pytest plugins."""
