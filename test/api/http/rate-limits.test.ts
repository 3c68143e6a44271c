/** Rate limits: by which address requests are counted, exactly and across processes. */
import { describe, expect, test } from 'vitest'
import { startApi, type TestApi } from '../../support/api.ts'
import { highLimits } from '../../support/environment.ts'

describe('requests are counted', () => {
  const limits = { SVC_RATE_LIMITS: highLimits({ capacity: 3 }) }
  const count = async (at: TestApi, ips: readonly (string | undefined)[]) => {
    const statuses = []
    for (const ip of ips) statuses.push((await at.get('/capacity/status', ip === undefined ? {} : { ip })).status)
    return statuses
  }

  test('by the peer address while no proxy is trusted, regardless of X-Forwarded-For', async () => {
    const direct = await startApi({ ...limits, SVC_TRUSTED_PROXY_HOPS: '0' })
    expect(await count(direct, ['192.0.2.1', '192.0.2.2', undefined, '192.0.2.3'])).toEqual([200, 200, 200, 429])
  })

  test('by the address that the one trusted proxy added, regardless of earlier entries', async () => {
    const server = await startApi({ ...limits, SVC_TRUSTED_PROXY_HOPS: '1' })
    const forged = ['1.1.1.1, 192.0.2.1', '2.2.2.2,192.0.2.1', '3.3.3.3, 4.4.4.4, 192.0.2.1', '192.0.2.1']
    expect(await count(server, forged)).toEqual([200, 200, 200, 429])
    expect(await count(server, ['192.0.2.1, 192.0.2.9', 'unknown', '', 'a'.repeat(5000)])).toEqual([200, 200, 200, 200])
  })

  test('by the address that the first of two trusted proxies added', async () => {
    const two = await startApi({ ...limits, SVC_TRUSTED_PROXY_HOPS: '2' })
    const forged = ['192.0.2.1, 10.0.0.1', '9.9.9.9, 192.0.2.1, 10.0.0.2', '192.0.2.1,10.0.0.3', '192.0.2.1, 10.0.0.4']
    expect(await count(two, forged)).toEqual([200, 200, 200, 429])
    expect(await count(two, ['192.0.2.2, 10.0.0.1'])).toEqual([200])
  })

  test('by the /64 of an IPv6 address, and by the IPv4 address of an IPv4-mapped one', async () => {
    const server = await startApi({ ...limits, SVC_TRUSTED_PROXY_HOPS: '1' })
    const same = ['2001:db8:0:7::1', '2001:db8:0:7:ffff::2', '2001:0DB8:0000:0007:1:2:3:4', '2001:db8:0:7::3%eth0']
    expect(await count(server, same)).toEqual([200, 200, 200, 429])
    expect(await count(server, ['2001:db8:0:8::1', '2001:db8::1'])).toEqual([200, 200])
    const mapped = ['::ffff:192.0.2.1', '192.0.2.1', '::FFFF:192.0.2.1', '::ffff:192.0.2.1']
    expect(await count(server, mapped)).toEqual([200, 200, 200, 429])
    expect(await count(server, ['::ffff:192.0.2.2'])).toEqual([200])
  })

  test('and the response has the remaining quota and the time of the reset', async () => {
    const server = await startApi(limits)
    const answers = []
    for (let round = 0; round < 4; round += 1) answers.push(await server.get('/capacity/status', { ip: '192.0.2.77' }))
    expect(answers.map((each) => each.headers.get('ratelimit'))).toEqual([
      expect.stringMatching(/^"capacity";r=2;t=(60|59)$/),
      expect.stringMatching(/^"capacity";r=1;t=(60|59|58)$/),
      expect.stringMatching(/^"capacity";r=0;t=\d+$/),
      expect.stringMatching(/^"capacity";r=0;t=\d+$/),
    ])
    for (const each of answers) expect(each.headers.get('ratelimit-policy')).toBe('"capacity";q=3;w=60')
    expect(answers[3]?.body.error?.code).toBe('rate_limited')
    expect(Number(answers[3]?.headers.get('retry-after'))).toBeGreaterThan(50)
    await server.sql`update rate_limit_windows set opened_at = opened_at - interval '1 minute'`
    expect((await server.get('/capacity/status', { ip: '192.0.2.77' })).status).toBe(200)
  })

  test('exactly, by concurrent replicas', async () => {
    const server = await startApi({ SVC_RATE_LIMITS: highLimits({ capacity: 20 }) })
    const other = await startApi({
      SVC_RATE_LIMITS: highLimits({ capacity: 20 }),
      DATABASE_URL: server.services.config.database.url,
    })
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, round) =>
        (round % 2 ? server : other).get('/capacity/status', { ip: '192.0.2.5' }),
      ),
    )
    expect(answers.filter((each) => each.status === 200)).toHaveLength(20)
  })
})
