"""The overview: what needs attention, how many groups there are, how busy they are, and whether the service is well."""
