"""Transactions, connections and statements below the repositories."""
