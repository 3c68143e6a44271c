/** The API reference: Scalar's page for the OpenAPI document, and a list of the operations for browsers without scripts. */
import type { OpenapiDocument } from './document.ts'
import { escapeHtml, listOperations } from './operation-list.ts'
import type { PageFiles } from './page-files.ts'

/**
 * Scalar adds style elements and style attributes. Scripts are files of this origin only, and requests go nowhere else. Its
 * stylesheet contains small images.
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

export const renderPage = (document: OpenapiDocument, files: PageFiles): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>API reference · ${escapeHtml(document.info.title)}</title>
<link rel="stylesheet" href="${files.pathOf('page.css')}">
<link rel="icon" href="data:,">
<script defer src="${files.pathOf('scalar-api-reference.js')}"></script>
<script type="module" src="${files.pathOf('start.js')}"></script>
</head>
<body>
<div id="reference"></div>
<noscript>
<main class="plain">
<h1>${escapeHtml(document.info.title)}</h1>
<p>This is the list of operations. With scripts enabled this page also sends requests. The whole description is the <a href="/openapi.json">OpenAPI document</a>.</p>
${listOperations(document)}
</main>
</noscript>
</body>
</html>
`
