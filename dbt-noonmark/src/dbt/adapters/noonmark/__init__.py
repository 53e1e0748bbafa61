"""dbt's adapter for Noonmark: the one for PostgreSQL, with what Noonmark has beyond it."""

from dbt.adapters.base import AdapterPlugin
from dbt.adapters.noonmark.connections import NoonmarkConnectionManager, NoonmarkCredentials
from dbt.adapters.noonmark.impl import NoonmarkAdapter
from dbt.include import noonmark

__all__ = ["NoonmarkAdapter", "NoonmarkConnectionManager", "NoonmarkCredentials", "Plugin"]

Plugin = AdapterPlugin(
    adapter=NoonmarkAdapter,
    credentials=NoonmarkCredentials,
    include_path=noonmark.PACKAGE_PATH,
    dependencies=["postgres"],
)
