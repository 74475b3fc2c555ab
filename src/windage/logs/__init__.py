"""Past data: logs of an environment, read, tested for drift, fitted by a model.

`read_log(path)` reads a CSV or Parquet file in a stream; `log.inspect()` says where it drifted and
by how much; `log.fit()` makes a drifting model of it, `log.preload(agent)` a warm start.
"""

from __future__ import annotations

from windage.logs.log import Log, read_log

__all__ = ["Log", "read_log"]
