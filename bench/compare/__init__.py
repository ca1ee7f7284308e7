"""Comparison of headless coding agents against one scripted model server."""
