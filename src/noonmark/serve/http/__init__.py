"""SQL over HTTP and WebSocket, health and figures."""
