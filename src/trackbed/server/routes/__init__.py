"""One noun a file: HTTP in, flows or services out."""
