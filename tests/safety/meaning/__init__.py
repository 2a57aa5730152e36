"""The classifier, the detector that combines it with the rules, and the enriched message."""
