"""What a server tells Prometheus: a module for each part that is asked."""

from noonmark.serve.metrics.figures import Figures

__all__ = ["Figures"]
