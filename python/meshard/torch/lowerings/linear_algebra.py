"""Linear_algebra."""
