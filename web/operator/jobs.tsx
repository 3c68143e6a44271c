/** The background jobs: the last run of each and its result. */
import type { PageRoute } from '../page.ts'

export const show: PageRoute = {
  method: 'GET',
  path: '/operator/jobs',
  caller: 'operator',
  handle: async ({ callOperatorApi }) => {
    const { body } = await callOperatorApi<{ jobs: { name: string }[] }>('GET', '/api/v1/admin/jobs')
    return {
      name: 'operator-jobs',
      title: 'Jobs',
      console: 'jobs',
      page: (
        <section class="card">
          <h1>Jobs</h1>
          <ul>
            {body.jobs.map((job) => (
              <li key={job.name}>{job.name}</li>
            ))}
          </ul>
        </section>
      ),
    }
  },
}
