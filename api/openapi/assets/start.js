/** Starts Scalar's reference of the API for the document of this origin. */
/* global Scalar */

/**
 * How requests are authenticated: `token` by what the visitor enters, at the API; `signed-in` and `signed-out` by the
 * cookie of the visitor, at the site, which forwards requests to the API and ignores tokens that are entered.
 */
const { access } = document.querySelector('[data-access]').dataset
const isSite = access !== 'token'

const response = await fetch('/openapi.json')
const content = await response.json()
content.info.title = document.title
// On the site the document keeps the address of the API, so that the samples work elsewhere; `send` sends to this
// origin.
if (!isSite) content.servers = [{ url: location.origin }]
if (isSite) content.components.securitySchemes.accessToken.description = describeSignIn()
for (const operation of Object.values(content.paths).flatMap((methods) => Object.values(methods)))
  prepareParameters(operation)

// The page has the colours of the system, as the site, and not those of a switch that it had once.
localStorage.removeItem('colorMode')
new MutationObserver(completeElements).observe(document.body, { childList: true, subtree: true })

Scalar.createApiReference('#reference', {
  content,
  // Nothing is loaded from or sent to another host.
  withDefaultFonts: false,
  telemetry: false,
  proxyUrl: '',
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  hideDarkModeToggle: true,
  showDeveloperTools: 'never',
  showToolbar: 'never',
  theme: 'none',
  layout: 'modern',
  documentDownloadType: 'json',
  operationTitleSource: 'summary',
  persistAuth: false,
  authentication: { preferredSecurityScheme: 'accessToken' },
  defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
  fetch: send,
})

function describeSignIn() {
  const way =
    access === 'signed-in' ? 'You are signed in: this page sends requests with your account.' : 'Sign in first.'
  return `${way} A token that is entered here is used in the code samples only.`
}

/**
 * Gives the header `Idempotency-Key` a new key, so that a request that is tried out is no repetition, and leaves
 * optional query parameters out of requests until they are switched on.
 */
function prepareParameters({ parameters = [], requestBody }) {
  const exampleNames = ['default', ...Object.keys(requestBody?.content?.['application/json']?.examples ?? {})]
  for (const parameter of parameters) {
    if (parameter.name === 'Idempotency-Key') parameter.example = crypto.randomUUID()
    if (parameter.in === 'query' && !parameter.required)
      parameter.examples = Object.fromEntries(exampleNames.map((name) => [name, { value: '', 'x-disabled': true }]))
  }
}

/**
 * Sends a request to this origin. An access token lasts a few minutes and the page is open for longer, so a request
 * that the site refuses for its token is sent again with the next one.
 */
async function send(input, init) {
  const request = new Request(input, init)
  const { headers, method, signal } = request
  // Scalar sends `Authorization: Bearer` while no token is entered, which the API refuses where it is optional.
  if (isSite || /^\w+\s*$/.test(headers.get('authorization') ?? '')) headers.delete('authorization')
  const { pathname, search } = new URL(request.url)
  const bytes = await request.arrayBuffer()
  const body = bytes.byteLength > 0 ? bytes : undefined
  const sendOnce = () => fetch(location.origin + pathname + search, { method, headers, body, signal })
  const reply = await sendOnce()
  if (access !== 'signed-in' || !(await isTokenRefused(reply))) return reply
  const renewal = await fetch('/api/v1/auth/refresh', { method: 'POST', signal })
  return renewal.ok ? sendOnce() : reply
}

/** Not each 401 is about the token: a wrong password is one as well, and so is the page of a proxy. */
async function isTokenRefused(reply) {
  if (reply.status !== 401) return false
  const body = await reply
    .clone()
    .json()
    .catch(() => undefined)
  return body?.error?.code === 'unauthorized'
}

/** Adds what Scalar's elements lack for keyboards and screen readers. */
function completeElements() {
  for (const button of document.querySelectorAll('button.group\\/copy-button:not([aria-label])'))
    button.ariaLabel = 'Copy'
  // Its name has to contain what it shows.
  for (const button of document.querySelectorAll('button.show-more[aria-label^="Show all"]'))
    button.ariaLabel = button.ariaLabel.replace('Show all', 'Show More:')
  for (const box of document.querySelectorAll('.scalar-card-content.custom-scroll:not([tabindex])')) box.tabIndex = 0
}
