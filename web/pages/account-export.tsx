/** The download of everything that is stored about the account. */
import type { PageHandler } from '../page.ts'
import { type Problem, ProblemMessage } from './messages.tsx'
import { problemOf } from './refusal-text.ts'

const path = '/account/security/export'

export const download: PageHandler = async (visit) => {
  const result = await visit.api.GET('/api/v1/auth/account/export')
  const { status } = result.response
  if (status !== 200)
    return {
      name: 'account-export',
      title: 'Download your data',
      section: 'account',
      layout: 'narrow',
      status,
      page: <Refused problem={problemOf(result)} />,
    }
  return {
    download: {
      fileName: `account-${new Date().toISOString().slice(0, 10)}.json`,
      contentType: 'application/json; charset=utf-8',
      content: JSON.stringify(result.data, null, 2),
    },
  }
}

const Refused = ({ problem }: { readonly problem: Problem }) => (
  <section class="card narrow">
    <h1>Download your data</h1>
    <ProblemMessage problem={problem} />
    <a class="link" href="/account/security">
      Back to security
    </a>
  </section>
)

/** A part of the security page. */
export const DownloadData = () => (
  <section class="card" aria-labelledby="export">
    <h2 id="export">Your data</h2>
    <p class="muted">Everything that is stored about you, as a JSON file. Needs a sign-in of the last 10 minutes.</p>
    <p>
      <a class="button second" href={path}>
        Download your data
      </a>
    </p>
  </section>
)
