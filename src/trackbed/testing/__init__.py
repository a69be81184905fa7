"""Contract suites for every port, fakes, fake clock, fault points."""
