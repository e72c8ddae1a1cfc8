"""Screens on top of the main one: questions, help, pages of text, the command line."""
