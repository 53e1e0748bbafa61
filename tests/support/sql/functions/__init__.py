"""What becomes of PostgreSQL's functions, operators and types: tried on both servers, as a page."""
