/** Starts Scalar's reference of the API for the document of this origin. */
/* global Scalar */
const response = await fetch('/openapi.json')
const content = await response.json()
// Requests go to the origin of this page: the site forwards them to the API with the visitor's sign-in.
content.servers = [{ url: location.origin }]
for (const operation of Object.values(content.paths).flatMap((methods) => Object.values(methods)))
  prepareParameters(operation)

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
  fetch: fetchWithoutEmptyCredentials,
})

/**
 * Gives the header `Idempotency-Key` a new key, so that a request that is tried out is no repetition, and leaves optional query
 * parameters out of requests until they are switched on.
 */
function prepareParameters({ parameters = [], requestBody }) {
  const exampleNames = ['default', ...Object.keys(requestBody?.content?.['application/json']?.examples ?? {})]
  for (const parameter of parameters) {
    if (parameter.name === 'Idempotency-Key') parameter.example = crypto.randomUUID()
    if (parameter.in === 'query' && !parameter.required)
      parameter.examples = Object.fromEntries(exampleNames.map((name) => [name, { value: '', 'x-disabled': true }]))
  }
}

/** Scalar sends `Authorization: Bearer` while no token is entered, which the API refuses where it is optional. */
function fetchWithoutEmptyCredentials(input, init) {
  const request = new Request(input, init)
  if (/^\w+\s*$/.test(request.headers.get('authorization') ?? '')) request.headers.delete('authorization')
  return fetch(request)
}
