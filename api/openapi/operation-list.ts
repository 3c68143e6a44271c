/** The operations of an OpenAPI document as plain HTML. */
import type { Examples } from '../http/operation-text.ts'
import type { OpenapiDocument } from './document.ts'
import type { Operation } from './operations.ts'

export const escapeHtml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

export function listOperations({ tags, paths }: OpenapiDocument): string {
  const all = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  )
  return tags
    .map(({ name, description }) => {
      const ofTag = all.filter(({ operation }) => operation.tags.includes(name))
      return `<h2>${escapeHtml(name)}</h2>\n<p>${escapeHtml(description)}</p>\n${ofTag.map(renderOperation).join('\n')}`
    })
    .join('\n')
}

interface NamedOperation {
  readonly method: string
  readonly path: string
  readonly operation: Operation
}

const renderOperation = ({ method, path, operation }: NamedOperation): string =>
  `<details data-operation="${escapeHtml(operation.operationId)}">
<summary><b>${method}</b> <code>${escapeHtml(path)}</code> ${escapeHtml(operation.summary)}</summary>
<p>${escapeHtml(operation.description)}</p>
${renderParameters(operation)}${renderRequest(operation)}<ul>${renderReplies(operation)}</ul>
</details>`

function renderParameters({ parameters }: Operation): string {
  const items = (parameters as readonly { name: string; in: string; required: boolean; description: string }[]).map(
    (parameter) =>
      `<li><code>${escapeHtml(parameter.name)}</code> (${parameter.in}${parameter.required ? ', required' : ''}): ${escapeHtml(parameter.description)}</li>`,
  )
  return items.length === 0 ? '' : `<ul>${items.join('')}</ul>\n`
}

interface Content {
  readonly content?: Readonly<Record<string, { readonly schema: object; readonly examples?: Examples }>>
}

/** The first example of a body, or the schema of one without examples. */
function renderContent({ content = {} }: Content): string {
  const [media] = Object.values(content)
  if (!media) return ''
  const [first] = Object.values(media.examples ?? {})
  const shown = first ? first.value : media.schema
  return `<pre>${escapeHtml(typeof shown === 'string' ? shown : JSON.stringify(shown, null, 2))}</pre>\n`
}

const renderRequest = ({ requestBody }: Operation): string =>
  requestBody ? `<p>Request body:</p>\n${renderContent(requestBody)}` : ''

/** The error codes of a shared reply are the last part of its reference. */
const renderReplies = ({ responses }: Operation): string =>
  Object.entries(responses)
    .map(([status, reply]) =>
      '$ref' in reply
        ? `<li>${status}: <code>${escapeHtml((reply.$ref.split('/').at(-1) ?? '').replaceAll('.', ', '))}</code></li>`
        : `<li>${status}: ${escapeHtml(reply.description)}\n${renderContent(reply as Content)}</li>`,
    )
    .join('')
