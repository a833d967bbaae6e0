"""Tests of the pages for programs."""
