"""What can stand behind the Brain port."""
