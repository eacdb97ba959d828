"""A folder for each page, or for several of one thing: views, reads, presentation, SQL and templates."""
