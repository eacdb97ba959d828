"""The control plane: REST views, their OpenAPI document, and what the admin looks like and lets do."""
