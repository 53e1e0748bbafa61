"""F11's events, its judge, and one program for each of the engines that are compared."""
