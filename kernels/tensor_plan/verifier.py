#!/usr/bin/env python3
"""Verifier of a tensor-layout kernel plan: the benchmark's suite, by default in mode final, with `verified`.

The plan file is read as JSON and never executed; everything that scores it is a protected file.
"""

import sys

from benchmark import main

if __name__ == "__main__":
    sys.exit(main(verifies=True))
