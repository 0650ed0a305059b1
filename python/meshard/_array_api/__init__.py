"""The functions of the array API standard, by the chapters of the standard."""
