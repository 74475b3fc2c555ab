"""The one way kernels are compiled: cached on disk, without the GIL, never with fast math.

Fast math would let the compiler reorder sums, and then the fused run and the step-by-step run
could differ in the last bit. Reference counting is off (`_nrt=False`): kernels allocate nothing,
and counting references to the dozen arrays of a world would cost five times as much as a step
does. A kernel that tries to allocate does not compile (docs/adr/0002).
"""

from __future__ import annotations

from typing import Any

from numba import njit

_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "_nrt": False}

compiled = njit(**_OPTIONS)
inlined = njit(**_OPTIONS, forceinline=True)
