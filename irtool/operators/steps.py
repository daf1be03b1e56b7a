"""The local operators that redistributions are made of, by name."""

from __future__ import annotations

RESHAPE, SPLIT, CONCAT, STRIDED_SLICE = "Reshape", "Split", "Concat", "StridedSlice"
