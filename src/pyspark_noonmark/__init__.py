"""Where Spark looks for the data source "noonmark" by itself.

Spark imports every top-level package whose name begins with ``pyspark_`` and registers its
`DefaultSource`. So ``spark.read.format("noonmark")`` works wherever Noonmark is installed.
"""

from noonmark.spark import Source as DefaultSource

__all__ = ["DefaultSource"]
