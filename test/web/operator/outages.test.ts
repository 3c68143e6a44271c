/** The console while the API refuses or is not available. */
import { expect, test } from 'vitest'
import { startApiDouble } from '../../support/api-double.ts'
import { startSite } from '../../support/site.ts'

const double = await startApiDouble()
const site = await startSite(double)

function operatorBrowser() {
  const browser = site.browser()
  browser.cookies.set('svc_operator', 'x'.repeat(43), '/operator')
  return browser
}

const refusal = (status: number, code: string) => ({ status, body: { error: { code, message: 'Refused.' } } })

test('the token is sent to the API, with the address of the operator', async () => {
  double.respondWith(() => ({ body: { jobs: [] } }))
  expect((await operatorBrowser().open('/operator/jobs')).name).toBe('operator-jobs')
  expect(double.requests.at(-1)?.headers).toMatchObject({
    authorization: `Bearer ${'x'.repeat(43)}`,
    'x-forwarded-for': expect.any(String),
  })
})

test.each(['/operator', '/operator/jobs', '/operator/audit', '/operator/regions'])(
  '%s says that the service is not available while the database is not',
  async (path) => {
    double.respondWith(() => refusal(503, 'temporarily_unavailable'))
    const page = await operatorBrowser().open(path)
    expect([page.status, page.name]).toEqual([503, 'error-away'])
  },
)

test.each([
  [401, 'invalid_operator'],
  [429, 'rate_limited'],
])('a token that is refused with %i is deleted', async (status, code) => {
  double.respondWith(() => refusal(status, code))
  const reply = await operatorBrowser().request('GET', '/operator/jobs')
  expect([reply.status, reply.headers.get('location')]).toEqual([303, '/operator/sign-in?next=%2Foperator%2Fjobs'])
  expect(reply.headers.getSetCookie()[0]).toMatch(/^svc_operator=; .*Max-Age=0/)
})

test('an act that fails shows why, and changes nothing of the page', async () => {
  double.respondWith(({ method }) =>
    method === 'POST' ? refusal(503, 'temporarily_unavailable') : { body: { regions: [] } },
  )
  const page = await operatorBrowser().post('/operator/regions/eu/drain', { reason: 'x' })
  expect([page.status, page.name, page.problem]).toEqual([503, 'operator-regions', 'temporarily_unavailable'])
})
