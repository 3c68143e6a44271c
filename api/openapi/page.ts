/**
 * The API reference: Scalar's page for the OpenAPI document, and a list of the operations for browsers without scripts.
 */
import type { OpenapiDocument } from './document.ts'
import { escapeHtml, listOperations } from './operation-list.ts'
import type { PageFiles } from './page-files.ts'

/**
 * Scalar adds style elements and style attributes. Scripts are files of this origin only, and requests go nowhere else.
 * Its stylesheet contains small images.
 */
export const pagePolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** The names in the head of the page. */
export interface PageNames {
  readonly brandName: string
  readonly siteUrl: string
}

/** The operation that returns an access token. */
const signInLink = '<a href="#tag/sign-in/POST/api/v1/auth/login">Sign in with a password</a>'

/**
 * The site replaces what is between the two comments by its own head (`web/pages/reference.tsx`), and `start.js` reads
 * `data-access`.
 */
export const renderPage = (document: OpenapiDocument, files: PageFiles, names: PageNames): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="same-origin">
<title>${escapeHtml(names.brandName)} API reference</title>
<link rel="stylesheet" href="${files.pathOf('page.css')}">
<link rel="icon" href="${files.pathOf('icon.svg')}">
<script defer src="${files.pathOf('scalar-api-reference.js')}"></script>
<script type="module" src="${files.pathOf('start.js')}"></script>
</head>
<body>
<!--head-->
<nav class="site-head" aria-label="Main">
<a class="site-brand" href="${escapeHtml(names.siteUrl)}/"><img src="${files.pathOf('icon.svg')}" alt="" width="30" height="30">${escapeHtml(names.brandName)}</a>
</nav>
<aside class="site-access" aria-label="Access" data-access="token">
Requests that are sent from this page need an access token in the field “Bearer Token”. ${signInLink} returns one as <code>cp_access_jwt</code>.
</aside>
<!--/head-->
<div id="reference"></div>
<noscript>
<main class="plain">
<h1>${escapeHtml(names.brandName)} API reference</h1>
<p>This is the list of operations. With scripts enabled this page also sends requests. The whole description is the <a href="/openapi.json">OpenAPI document</a>.</p>
${listOperations(document)}
</main>
</noscript>
</body>
</html>
`
