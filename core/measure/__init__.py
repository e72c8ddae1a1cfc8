"""Measuring and deciding: evidence of processes, the gate, verdicts in words. No I/O, no clock.

Samples or scores become a process's evidence (`arms.from_arms`, `scores.from_scores`); `gate.decide` says
what a `reading.Channel` of them shows under a `rule.Rule`, or that it needs one more process, which
`plan.plan_process` lays out; `floor.Floor.learn` keeps the noise for the next decision. `texts` puts a
`decision.Decision` into words. Import from the modules: a reader of stored verdicts then loads no more.
"""
