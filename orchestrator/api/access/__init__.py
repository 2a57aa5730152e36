"""Who may call what: roles, scopes, the rule of each route, and how a caller is recognised."""
