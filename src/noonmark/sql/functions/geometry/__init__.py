"""Functions and operators of points, lines, segments, boxes, paths, polygons and circles."""
