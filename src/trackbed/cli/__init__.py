"""One file per command, loaded lazily: `main.py` knows names and one line of help, nothing else is imported before it is used.

main     finds the command, turns errors into sentences and exit statuses
context  language, server and form of output that were asked for
output   tables, records, JSON, a progress line
"""
