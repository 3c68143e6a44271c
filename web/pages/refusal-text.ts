/** The api's refusals, as a person in front of a form reads them. */
import { type ApiResponse, readApiError } from '../api.ts'

export interface Problem {
  readonly text: string
  /** The field of the form that it is about. */
  readonly field?: string
}

const fieldNames: Readonly<Record<string, string>> = { email: 'email address', password: 'password' }

export function problemOf(answer: ApiResponse): Problem {
  const { code, message } = readApiError(answer)
  if (code === 'rate_limited') return { text: tooOften(answer.headers.get('retry-after')) }
  if (code === 'invalid_credentials') return { text: message, field: 'password' }
  // The api's own sentence is for whoever sees headers.
  if (code === 'internal_error') return { text: 'Something went wrong on our side. Try again in a moment.' }
  if (code !== 'invalid_request') return { text: message }
  const [, field = '', rest] = /^body field (\w+): (.+?)\.?$/.exec(message) ?? []
  const name = fieldNames[field]
  return name ? { field, text: `The ${name} ${rest}.` } : { text: 'Something in this form is not right: check it.' }
}

function tooOften(retryAfter: string | null): string {
  const seconds = Number(retryAfter) || 60
  return `Too many tries. Wait ${seconds} ${seconds === 1 ? 'second' : 'seconds'}, then try again.`
}
