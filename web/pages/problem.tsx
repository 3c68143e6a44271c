/** Error pages, and the page that forwards to another address. */
import type { VNode } from 'preact'
import { Icon, type IconName } from '../icons.tsx'
import type { Document } from '../page.ts'

const problems = {
  not_found: [404, 'Page not found', 'This page doesn’t exist. Check the address, or continue below.'],
  forbidden: [
    403,
    'Request blocked',
    'This form was submitted from another site, so nothing was changed. Open the page here and try again.',
  ],
  unreadable: [
    400,
    'Invalid form data',
    'The form contains text that isn’t valid UTF-8. Go back, change it and submit the form again.',
  ],
  too_large: [
    413,
    'Request too large',
    'The form contains more data than this page accepts. Shorten it and try again.',
  ],
  away: [
    503,
    'Temporarily unavailable',
    'The service isn’t responding right now. This page tries again every few seconds by itself.',
  ],
  broken: [500, 'Something went wrong', 'An unexpected error occurred, and we’ve logged it. Try again in a moment.'],
} as const satisfies Record<string, readonly [number, string, string]>

export type ProblemKind = keyof typeof problems

const icons: Readonly<Record<ProblemKind, IconName>> = {
  not_found: 'map-pin-off',
  forbidden: 'shield-alert',
  unreadable: 'file-warning',
  too_large: 'file-warning',
  away: 'cloud-off',
  broken: 'triangle-alert',
}

const retrySeconds = 5

export const problemPage = (kind: ProblemKind): Document =>
  problemDocument(kind, { href: '/', text: 'Go to the home page' })

/** In the frame of the operator console, whose navigation stays. */
export const consoleProblemPage = (kind: ProblemKind): Document => ({
  ...problemDocument(kind, { href: '/operator', text: 'Go to the overview' }),
  console: 'error',
})

function problemDocument(kind: ProblemKind, wayOut: { readonly href: string; readonly text: string }): Document {
  const [status, title, text] = problems[kind]
  return {
    name: `error-${kind}`,
    status,
    title,
    layout: 'narrow',
    ...(kind === 'away' ? { retryAfterSeconds: retrySeconds } : {}),
    page: (
      <section class="card empty">
        <Icon name={icons[kind]} />
        <h1>{title}</h1>
        <p>{text}</p>
        <p>
          <a class="button second" href={wayOut.href}>
            {wayOut.text}
          </a>
        </p>
      </section>
    ),
  }
}

/** Browsers follow the refresh of the document at once; the link is for those that do not. */
export const forwardingPage = (message: string, continueTo: string): VNode => (
  <section class="card narrow">
    <h1>{message}</h1>
    <p>
      <a class="link" href={continueTo}>
        Continue
      </a>
    </p>
  </section>
)
