"""What the guard must find and what it must let pass, with the files of phrases."""
