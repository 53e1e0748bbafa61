"""The relational plan: frozen nodes whose constructors refuse what has no meaning."""
