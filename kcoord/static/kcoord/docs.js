"use strict";

// validatorUrl: the badge of Swagger UI would send this page's address to another host.
SwaggerUIBundle({
  url: document.getElementById("swagger-ui").dataset.document,
  dom_id: "#swagger-ui",
  deepLinking: true,
  docExpansion: "list",
  validatorUrl: null,
});
