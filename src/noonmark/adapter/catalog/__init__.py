"""The catalog: every object that SQL can name, as one immutable value that DDL replaces.

item       one object: what it is called, what it is, what it needs
catalog    all of them, and how a name finds one
store      the catalog as a collection of the location, changed in the same commits
staging    the catalog as a transaction sees it that changes it
"""

from noonmark.adapter.catalog.catalog import Catalog
from noonmark.adapter.catalog.item import Item, Kind

__all__ = ["Catalog", "Item", "Kind"]
