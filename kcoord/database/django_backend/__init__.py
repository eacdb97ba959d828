"""Django's database backend for Postgres, with limits on every wait."""
