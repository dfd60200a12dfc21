"""Masked passwords, `ENC(…)`, for every floor that reads a configuration: the lowest room."""

from __future__ import annotations

from masking.codec import KEY_VARIABLE, MaskError, is_masked, mask, unmask

__all__ = ["KEY_VARIABLE", "MaskError", "is_masked", "mask", "unmask"]
