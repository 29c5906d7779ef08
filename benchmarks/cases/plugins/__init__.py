"""The leak cases as unit tests: each and its twin under the marker or fixture of three pytest plugins."""
