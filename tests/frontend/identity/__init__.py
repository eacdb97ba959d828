"""Sign-in and sign-out at an identity provider that runs in a process of its own."""
