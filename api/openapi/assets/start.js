/** Starts Scalar's reference of the API for the document of this origin. */
/* global Scalar */
const response = await fetch('/openapi.json')
const content = await response.json()
// Requests go to the origin of this page: the site forwards them to the API with the visitor's sign-in.
content.servers = [{ url: location.origin }]
useFreshKeys(content)

Scalar.createApiReference('#reference', {
  content,
  // Nothing is loaded from or sent to another host.
  withDefaultFonts: false,
  telemetry: false,
  proxyUrl: '',
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  showDeveloperTools: 'never',
  showToolbar: 'never',
  theme: 'none',
  layout: 'modern',
  documentDownloadType: 'json',
  operationTitleSource: 'summary',
  persistAuth: false,
  authentication: { preferredSecurityScheme: 'accessToken' },
  defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
})

/** Gives each header `Idempotency-Key` a new key, so that a request that is tried out is not a repetition. */
function useFreshKeys({ paths }) {
  const operations = Object.values(paths).flatMap((methods) => Object.values(methods))
  for (const parameter of operations.flatMap(({ parameters = [] }) => parameters))
    if (parameter.name === 'Idempotency-Key') parameter.example = crypto.randomUUID()
}
