"""The JVM under Spark: the session, the archive of its classes, its Python daemon, and its loss."""
