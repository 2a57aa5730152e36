"""What is said about danger, and what no brain may say."""
