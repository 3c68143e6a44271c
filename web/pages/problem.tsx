/** Pages for when something is not there or does not work. */
import type { PageResult } from '../page.ts'

const problems = {
  not_found: [404, 'Not found', 'There is no such page here.'],
  forbidden: [403, 'Not done', 'This was sent from another site, so nothing was done. Go to the page and do it there.'],
  unreadable: [400, 'Form not readable', 'The form holds text that is not UTF-8. Go back, and send it again.'],
  too_large: [413, 'Too large', 'That was more than this page takes.'],
  away: [
    503,
    'One moment, please',
    'The service does not answer just now. Nothing is lost: try again in a few seconds.',
  ],
  broken: [500, 'Something went wrong', 'That is our fault, and it was written down. Try again in a moment.'],
} as const satisfies Record<string, readonly [number, string, string]>

export function problemPage(kind: keyof typeof problems): PageResult {
  const [status, title, says] = problems[kind]
  return {
    status,
    title,
    page: (
      <section class="card narrow">
        <h1>{title}</h1>
        <p>{says}</p>
        <p>
          <a href="/">Back to the start</a>
        </p>
      </section>
    ),
  }
}

export const leadingPage = (says: string, continueTo: string) => (
  <section class="card narrow">
    <h1>{says}</h1>
    <p>
      <a class="link" href={continueTo}>
        Go on
      </a>
    </p>
  </section>
)
