/** The OpenAPI document as an HTML page. */
import type { OpenapiDocument } from './document.ts'
import type { Operation } from './operations.ts'

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

const json = (value: unknown): string => `<pre>${escaped(JSON.stringify(value, null, 2))}</pre>`

export function docsPage(document: OpenapiDocument): string {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  )
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>${escaped(document.info.title)}</title><link rel="stylesheet" href="/docs.css"></head>
<body><h1>${escaped(document.info.title)}</h1><p>${escaped(document.info.description)} Also available as <a href="/openapi.json">OpenAPI 3.1</a>.</p>
${operations.map(section).join('\n')}
</body></html>`
}

/** The error codes of a shared reply are the last part of its reference. */
const describe = (response: Operation['responses'][string]): string =>
  '$ref' in response ? (response.$ref.split('/').at(-1) ?? '').replaceAll('.', ', ') : response.description

function section({ method, path, operation }: { method: string; path: string; operation: Operation }): string {
  const { parameters, requestBody, responses } = operation
  return `<details><summary><b>${method}</b> <code>${escaped(path)}</code> <span>${escaped(operation.summary)}</span></summary>
${parameters.length > 0 ? `<h3>Parameters</h3>${json(parameters)}` : ''}
${requestBody ? `<h3>Body</h3>${json(requestBody)}` : ''}
<h3>Responses</h3>${Object.entries(responses)
    .map(
      ([status, response]) =>
        `<h4>${status} <small>${escaped(describe(response))}</small></h4>${'content' in response && Number(status) < 300 ? json(response.content) : ''}`,
    )
    .join('')}</details>`
}

export const docsStyle = `:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:56rem;margin:2rem auto;padding:0 1rem}
details{border-top:1px solid #8884;padding:.5rem 0}summary{cursor:pointer}summary span{opacity:.75}
summary b{display:inline-block;min-width:4.5rem}pre{overflow:auto;background:#8882;padding:.75rem;border-radius:.5rem;font-size:.8rem}
h3{font-size:1rem;margin:.75rem 0 .25rem}h4{margin:.5rem 0 .25rem;font-weight:600}small{font-weight:400;opacity:.75}`
