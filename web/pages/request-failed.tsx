/** The page when the API could not read or decide a request that waits for its user. */
import type { PageResult } from '../page.ts'
import { type Problem, ProblemMessage } from './messages.tsx'

/** @param path leads back to the request. */
export const requestFailedPage = (name: string, status: number, problem: Problem, path: string): PageResult => ({
  name,
  title: 'Something went wrong',
  status,
  page: (
    <section class="card narrow">
      <h1>Something went wrong</h1>
      <ProblemMessage problem={problem} />
      <a class="button second wide" href={path}>
        Back to the request
      </a>
    </section>
  ),
})
