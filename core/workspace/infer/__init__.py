"""Inference of a workspace from a folder that has none of our files: see `infer`."""

from core.workspace.infer.findings import Finding, Inference, Probe, ProbeOutput
from core.workspace.infer.inference import infer
from core.workspace.infer.writing import refuse_existing, write_new

__all__ = ["Finding", "Inference", "Probe", "ProbeOutput", "infer", "refuse_existing", "write_new"]
