"""Kill, cut, stall and fill up; then see that nothing was lost."""
