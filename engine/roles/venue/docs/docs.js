// Starts Swagger UI on the document of this venue. A plugin adds a tab with the same request in JavaScript.
"use strict";

// The body of a request, as JavaScript that makes the same text.
function bodyOf(body) {
  try {
    return `JSON.stringify(${JSON.stringify(JSON.parse(body), null, 2)})`;
  } catch {
    return JSON.stringify(body);
  }
}

function fetchSnippet(request) {
  const options = { method: request.get("method"), headers: Object.fromEntries(request.get("headers") ?? []) };
  const body = request.get("body");
  const written = Object.entries(options).map(([name, value]) => `  ${name}: ${JSON.stringify(value)},`);
  if (body !== undefined) written.push(`  body: ${bodyOf(body)},`);
  return [
    `const response = await fetch(${JSON.stringify(request.get("url"))}, {`,
    ...written,
    "});",
    "console.log(response.status, await response.text());",
  ].join("\n");
}

// A stream has no end, so that Swagger UI would wait for its answer for ever.
const isTried = (spec, path, method) =>
  !spec.hasIn(["paths", path, method, "responses", "200", "content", "text/event-stream"]);

const plugin = {
  fn: { requestSnippetGenerator_js_fetch: fetchSnippet },
  statePlugins: {
    spec: {
      wrapSelectors: {
        allowTryItOutFor: (_, system) => (state, path, method) => isTried(system.specSelectors.specJson(), path, method),
      },
    },
  },
};

window.ui = SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#page",
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  docExpansion: "list",
  filter: true,
  validatorUrl: null, // the validator is at another host
  requestSnippetsEnabled: true,
  requestSnippets: {
    generators: {
      curl_bash: { title: "curl", syntax: "bash" },
      js_fetch: { title: "JavaScript", syntax: "javascript" },
    },
    languages: ["curl_bash", "js_fetch"],
  },
  plugins: [plugin],
});
