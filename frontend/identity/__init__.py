"""Sign-in with a company's identity: OpenID Connect, the authorization code flow with PKCE."""
