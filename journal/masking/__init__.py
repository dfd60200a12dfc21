"""Masked passwords, `ENC(…)`, for every package that reads a configuration."""

from __future__ import annotations

from journal.masking.codec import KEY_VARIABLE, MaskError, is_masked, mask, unmask

__all__ = ["KEY_VARIABLE", "MaskError", "is_masked", "mask", "unmask"]
