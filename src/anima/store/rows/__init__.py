"""A home in PostgreSQL: many homes of many tenants on one server, each behind its own row policy."""
