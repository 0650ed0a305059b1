"""Fourier."""
