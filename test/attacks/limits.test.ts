/** Rate limits and guesses under addresses that the attacker chooses, with the limits of production. */
import { randomBytes, randomInt } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type Answer, Client, type ErrorBody, signUp } from '../support/api.ts'
import { operator, operatorPassword } from '../support/relays.ts'
import { inParallel } from './operations.ts'
import { type AttackedService, startAttackedService } from './service.ts'

/**
 * A window may end between two requests of a test, so a test sends this many times the limit and expects half refused.
 */
const timesLimit = 4

const [direct, proxied] = await Promise.all([
  startAttackedService({ variables: { SVC_RATE_LIMITS: '' } }),
  startAttackedService({
    variables: { SVC_RATE_LIMITS: 'login=5,login_failures=4,operator_failures=6', SVC_TRUSTED_PROXY_HOPS: '1' },
  }),
])

type Headers = Readonly<Record<string, string>>

const byte = () => randomInt(1, 255)
const randomIpv4 = () => `${randomInt(11, 100)}.${byte()}.${byte()}.${byte()}`

interface Limited {
  readonly path: string
  readonly limit: number
  readonly method: 'get' | 'post'
}

/** Operations of anyone, counted by address before their input is read. */
const limited: readonly Limited[] = [
  { path: '/auth/login', limit: 5, method: 'post' },
  { path: '/auth/signup', limit: 5, method: 'post' },
  { path: '/auth/password/forgot', limit: 5, method: 'post' },
  { path: '/auth/plugin/login/start', limit: 10, method: 'post' },
  { path: '/auth/oauth/twitch/start', limit: 20, method: 'post' },
  { path: '/notifications/unsubscribe', limit: 30, method: 'post' },
  { path: '/capacity/status', limit: 60, method: 'get' },
  { path: '/incidents', limit: 60, method: 'get' },
  { path: '/relay/pair', limit: 30, method: 'get' },
  { path: '/shared/guess', limit: 60, method: 'get' },
]

/** Requests beyond the limit, each with other headers. @returns how many were not refused by it. */
async function countAnswered({ api }: AttackedService, { path, limit, method }: Limited, headers: () => Headers) {
  const requests = Array(limit * timesLimit).fill(path)
  const answers: Answer<object>[] = await inParallel(requests, () =>
    method === 'get' ? api.get(path, { headers: headers() }) : api.post(path, {}, { headers: headers() }),
  )
  return answers.filter(({ status }) => status !== 429).length
}

const spoofed: Readonly<Record<string, () => string>> = {
  'X-Forwarded-For': () => `${randomIpv4()}, ${randomIpv4()}`,
  'X-Real-IP': randomIpv4,
  'X-Client-IP': randomIpv4,
  'X-Cluster-Client-IP': randomIpv4,
  'True-Client-IP': randomIpv4,
  'CF-Connecting-IP': randomIpv4,
  'Fastly-Client-IP': randomIpv4,
  'X-Originating-IP': randomIpv4,
  Forwarded: () => `for=${randomIpv4()};proto=https`,
  Via: () => `1.1 ${randomIpv4()}`,
}
const allSpoofed = (): Headers => Object.fromEntries(Object.entries(spoofed).map(([name, value]) => [name, value()]))

describe('without a trusted proxy', () => {
  test.each(limited)('no header with an address gives $path another bucket', async (route) => {
    const answered = await countAnswered(direct, route, allSpoofed)
    expect(answered).toBeGreaterThan(0)
    expect(answered).toBeLessThanOrEqual((route.limit * timesLimit) / 2)
  })
})

describe('behind one trusted proxy', () => {
  const network = randomBytes(6).toString('hex').match(/.{4}/g)?.join(':')
  const group = () => randomBytes(2).toString('hex')
  const seen = randomIpv4()
  const network4 = randomIpv4().split('.').slice(0, 3).join('.')
  const buckets: Readonly<Record<string, () => string>> = {
    'the addresses before the last one': () => `${randomIpv4()}, ${randomIpv4()}, ${seen}`,
    'the addresses of one IPv6 /64': () => `2001:${network}:${group()}:${group()}:${group()}:${group()}`,
    'the addresses before a text that is no address': () => `${randomIpv4()}, ${randomIpv4()}:80, unknown`,
    'the ports of one address': () => `${randomIpv4()}, ${network4}.7:${byte()}`,
    'the IPv4 address as a mapped one': () => `::ffff:${seen.split('.').slice(0, 3).join('.')}.250`,
    'zones of one link-local address': () => `fe80::1%eth${byte()}`,
    'an empty entry at the end': () => `${randomIpv4()},`,
  }
  const target: Limited = { path: '/auth/plugin/login/start', limit: 10, method: 'post' }

  test.each(Object.keys(buckets))('%s share one bucket', async (name) => {
    const answered = await countAnswered(proxied, target, () => ({
      ...allSpoofed(),
      'X-Forwarded-For': buckets[name]?.() ?? '',
    }))
    expect(answered).toBeLessThanOrEqual((target.limit * timesLimit) / 2)
  })

  test('each address has a bucket of its own, so the attacks above fail for their spelling alone', async () => {
    const answered = await countAnswered(proxied, target, () => ({ 'X-Forwarded-For': randomIpv4() }))
    expect(answered).toBe(target.limit * timesLimit)
  })

  const login = (email: string, password: string, ip: string) =>
    proxied.api.post('/auth/login', { email, password }, { ip })
  const wrong = () => randomBytes(12).toString('hex')

  test('passwords of one account are guessed from many addresses no faster than from one', async () => {
    const victim = await signUp(proxied.api)
    const answers = await inParallel(Array(30).fill(victim.email), (email) => login(email, wrong(), randomIpv4()))
    expect(answers.filter(({ status }) => status === 401).length).toBeLessThanOrEqual(8)
    expect(answers.filter(({ status }) => ![401, 429].includes(status))).toEqual([])
    const [entry] = await proxied.sql`
      select count(*)::int as count from audit_entries where user_id = ${victim.userId} and action like '%failed%'`
    expect(entry?.count).toBeGreaterThan(0)
  })

  test('an owner signs in from a familiar network while others guess the password', async () => {
    const owner = await signUp(proxied.api)
    const [familiar, password] = [randomIpv4(), owner.password]
    expect((await login(owner.email, password, familiar)).status).toBe(200)
    await inParallel(Array(10).fill(owner.email), (email) => login(email, wrong(), randomIpv4()))
    expect((await login(owner.email, password, familiar)).status).toBe(200)
  })

  test('passwords of many accounts are guessed from one address no faster than of one', async () => {
    const ip = randomIpv4()
    const emails = Array.from({ length: 20 }, () => `${wrong()}@example.com`)
    const answers = await inParallel(emails, (email) => login(email, wrong(), ip))
    expect(answers.filter(({ status }) => status === 401).length).toBeLessThanOrEqual(10)
  })
})

describe('the operator password', () => {
  const guess = (ip: string, password = randomBytes(12).toString('hex'), { api } = proxied) =>
    api.get<Partial<ErrorBody>>('/admin/jobs', {
      ip,
      headers: { Authorization: `Basic ${Buffer.from(`operator:${password}`).toString('base64')}` },
    })
  const token = (ip: string) => proxied.api.get('/admin/jobs', { ip, bearer: randomBytes(32).toString('base64url') })

  test('is guessed a few times a minute from one address, and the right one is refused then too', async () => {
    const ip = randomIpv4()
    const answers = await inParallel(Array(30).fill(ip), () => guess(ip))
    expect(answers.filter(({ status }) => status === 401).length).toBeLessThanOrEqual(10)
    expect(answers.filter(({ status }) => ![401, 429].includes(status))).toEqual([])
    expect((await guess(ip, operatorPassword)).status).toBe(429)
  })

  test('is guessed a few times a minute from all new addresses together, and operators keep their own network', async () => {
    const own = randomIpv4()
    await proxied.sql`delete from rate_limit_windows`
    expect((await guess(own, operatorPassword)).status).toBe(200)
    const answers = await inParallel(Array(40).fill(''), () => guess(randomIpv4()))
    expect(answers.filter(({ status }) => status === 401).length).toBeLessThanOrEqual(12)
    expect((await guess(own, operatorPassword)).status).toBe(200)
  })

  test('and the token of an operator session are guessed with one budget', async () => {
    const ip = randomIpv4()
    const answers = await inParallel(Array(30).fill(ip), () => token(ip))
    expect(answers.filter(({ status }) => status === 401).length).toBeLessThanOrEqual(10)
  })

  test('has its guesses in the audit, in few entries and without the guessed texts', async () => {
    const texts = Array.from({ length: 12 }, () => `guessed-${randomBytes(8).toString('hex')}`)
    await inParallel(texts, (text) => guess(randomIpv4(), text))
    const { body } = await direct.api.get('/admin/audit', { headers: operator })
    expect(body).toHaveProperty('entries')
    const rows =
      await proxied.sql`select to_jsonb(a)::text as entry from audit_entries a where action = 'operator_sign_in_failed'`
    expect(rows.length).toBeGreaterThan(0)
    expect(rows.length).toBeLessThanOrEqual(20)
    expect(rows.filter(({ entry }) => texts.some((text) => entry.includes(text)))).toEqual([])
  })

  test.each(['Operator', 'operator ', 'root', '', 'operator\0'])(
    'is accepted with no other name than operator: %j',
    async (name) => {
      const client = new Client(direct.api.url)
      const basic = Buffer.from(`${name}:${operatorPassword}`).toString('base64')
      const answer = await client.get('/admin/jobs', { headers: { Authorization: `Basic ${basic}` } })
      expect([401, 429]).toContain(answer.status)
    },
  )
})
