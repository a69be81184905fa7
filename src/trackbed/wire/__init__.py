"""msgspec records of the API: one class serves SDK, server, supervisor, OpenAPI and the web page's types.

Times are UTC microseconds (`…_us`), sizes bytes, durations seconds. Fields only grow; unknown fields are ignored on read.
"""
