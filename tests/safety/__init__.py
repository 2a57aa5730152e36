"""What the guard must hear and what it must let pass; the phrases stand beside, some of them set aside."""
