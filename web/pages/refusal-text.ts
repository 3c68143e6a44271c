/** Error replies of the API as messages for the person in front of a form. */
import type { ApiResult } from '../../client/api-error.ts'
import { readApiError } from '../api-client.ts'
import type { Problem } from './messages.tsx'

const fieldNames: Readonly<Record<string, string>> = {
  email: 'email address',
  password: 'password',
  new_password: 'new password',
}

/** @param texts messages of the page for particular codes, which take precedence. */
export function problemOf(result: ApiResult, texts: Readonly<Record<string, string>> = {}): Problem {
  const { code, message } = readApiError(result)
  const text = Object.hasOwn(texts, code) ? texts[code] : undefined
  if (text !== undefined) return { code, text }
  if (code === 'rate_limited') return { code, text: rateLimitText(result.response.headers.get('retry-after')) }
  if (code === 'invalid_credentials') return { code, text: message, field: 'password' }
  // The API's message refers to a response header, which a browser does not show.
  if (code === 'internal_error') return { code, text: 'Something went wrong on our side. Try again in a moment.' }
  if (code !== 'invalid_request') return { code, text: message }
  const [, field = '', rest] = /^body field (\w+): (.+?)\.?$/.exec(message) ?? []
  const name = fieldNames[field]
  return name ? { code, field, text: `The ${name} ${rest}.` } : { code, text: 'Check the form for invalid values.' }
}

function rateLimitText(retryAfter: string | null): string {
  const seconds = Number(retryAfter) || 60
  return `Too many attempts. Try again in ${seconds} ${seconds === 1 ? 'second' : 'seconds'}.`
}
