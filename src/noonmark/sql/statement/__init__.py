"""Text to statements: `parse_statements` reads a whole text, `split_statements` only divides it.

    text -> lexer (tokens with places) -> split at ; -> one parser per kind -> `statement`

Only the heads of statements are read here; a query inside one is handed to `sql.dialect`, under
the positions of the whole text.
"""

from noonmark.sql.statement.parser import parse_statements, split_statements
from noonmark.sql.statement.statement import Parsed

__all__ = ["Parsed", "parse_statements", "split_statements"]
