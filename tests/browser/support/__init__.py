"""Browser tabs and servers for the tests of the page."""
