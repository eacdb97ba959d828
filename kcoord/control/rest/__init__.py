"""Base classes of the control plane: views, fields, schemas, pages of lists."""
