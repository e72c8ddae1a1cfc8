"""Details of what is selected: the evidence of a trial, a checkpoint, comparisons, plots; all as lines."""
