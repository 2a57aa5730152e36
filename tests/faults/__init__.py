"""Kills, cuts, stalls and full disks, after which nothing may be lost."""
