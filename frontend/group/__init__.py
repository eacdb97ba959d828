"""The tabs of a group's page: tables that are filtered, sorted and paged, configuration, the map, the states."""
