/** Hostile values in every parameter and body field of every operation, sent by a caller whom the operation accepts. */
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, test } from 'vitest'
import { type GivenUser, signUp } from '../support/api.ts'
import { connectApp } from '../support/apps.ts'
import { readMetrics } from '../support/metrics.ts'
import { operator } from '../support/relays.ts'
import {
  inParallel,
  type Json,
  nameOf,
  type Operation,
  operations,
  type Received,
  type Schema,
  type Sending,
  sendOperation,
} from './operations.ts'
import { startAttackedService } from './service.ts'

const service = await startAttackedService()
const { api, sql, variables } = service

let attacker: GivenUser
let victim: GivenUser
let appToken: string

beforeAll(async () => {
  attacker = await signUp(api)
  victim = await service.paidUser()
  appToken = (await connectApp(api, attacker.bearer)).access_token
})

const [relaySecret = ''] = (variables.SVC_RELAY_AUTH_SECRET ?? '').split(',')

function credentialsFor({ schemes }: Operation): Record<string, string> {
  if (schemes.includes('operator')) return operator
  if (schemes.includes('accessToken')) return { Authorization: `Bearer ${attacker.bearer}` }
  if (schemes.includes('appToken')) return { Authorization: `Bearer ${appToken}` }
  return schemes.includes('relayAuth') ? { 'X-Relay-Auth': relaySecret } : {}
}

interface Attack {
  readonly operation: Operation
  readonly label: string
  readonly sending: Sending
}

type Outcome = Attack & { readonly received: Received }

async function attack({ operation, label, sending }: Attack): Promise<Outcome> {
  const headers = { ...credentialsFor(operation), ...sending.headers }
  return { operation, label, sending, received: await sendOperation(api.url, operation, { ...sending, headers }) }
}

/** 501, and 503 of a start without room, are replies that the document describes for valid requests. */
const isFailure = ({ received: { status, code } }: Outcome) =>
  status >= 500 && !['not_available', 'capacity_exhausted'].includes(code ?? '')

const describeOutcome = ({ operation, label, received }: Outcome) =>
  `${nameOf(operation)} ${label}: ${received.status} ${received.text.slice(0, 200)}`

const failuresOf = (outcomes: readonly Outcome[]) => outcomes.filter(isFailure).map(describeOutcome)

const isRecord = (value: unknown): value is Record<string, Json> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The paths of all fields that hold a text or may hold one. */
function textFields({ properties, anyOf }: Schema, path: readonly string[] = []): string[][] {
  const own = Object.entries(properties ?? {}).flatMap(([name, schema]) =>
    schema.properties ? textFields(schema, [...path, name]) : [[...path, name]],
  )
  return [...own, ...(anyOf ?? []).flatMap((schema) => textFields(schema, path))]
}

function withField(body: Json | undefined, [name = '', ...rest]: readonly string[], value: Json): Json {
  const record = isRecord(body) ? body : {}
  return { ...record, [name]: rest.length === 0 ? value : withField(record[name], rest, value) }
}

const bodyFields = ({ bodySchema }: Operation) => (bodySchema ? textFields(bodySchema) : [])
const withBody = operations.filter(({ bodySchema, template }) => bodySchema && !template.endsWith('/webhook'))

test('the operations of the document accept the credentials of the attacks', async () => {
  const outcomes = await inParallel(
    operations.filter(({ method, isPublic }) => method === 'GET' && !isPublic),
    (operation) => attack({ operation, label: 'as it is', sending: {} }),
  )
  expect(outcomes.length).toBeGreaterThan(30)
  expect(outcomes.filter(({ received }) => [401, 403].includes(received.status)).map(describeOutcome)).toEqual([])
  expect(failuresOf(outcomes)).toEqual([])
})

describe('SQL', () => {
  const payloads = [
    "'",
    "' or '1'='1",
    "'; drop table users; --",
    "' || pg_sleep(100) || '",
    '1); select pg_sleep(100); --',
    '$1::text; {{7*7}} %s %n',
  ]

  test('in every parameter and field of every operation is a value, and runs nothing', async () => {
    const snapshot = () => sql`
      select (select jsonb_agg(to_jsonb(u) order by id) from users u where id in (${victim.userId}, ${attacker.userId})) as rows,
        (select count(*) from information_schema.tables where table_schema = 'public') as tables`
    const before = await snapshot()
    const attacks = operations.flatMap((operation) =>
      payloads.flatMap((payload, index) => [
        ...operation.parameters.map((parameter): Attack => {
          const value = parameter.in === 'path' ? encodeURIComponent(payload) : payload
          const { name } = parameter
          const sending = parameter.in === 'header' ? { headers: { [name]: payload } } : { values: { [name]: value } }
          return { operation, label: `${name}=${payload}`, sending }
        }),
        ...bodyFields(operation)
          // A password is hashed and takes a quarter of a second each.
          .filter((path) => index === 1 || !path.join().includes('password'))
          .map(
            (path): Attack => ({
              operation,
              label: `${path.join('.')}=${payload}`,
              sending: { body: withField(operation.body, path, payload) },
            }),
          ),
      ]),
    )
    expect(attacks.length).toBeGreaterThan(700)
    const outcomes = await inParallel(attacks, attack)
    expect(failuresOf(outcomes)).toEqual([])
    expect(await snapshot()).toEqual(before)
  })
})

describe('a JSON body', () => {
  const hostile: Readonly<Record<string, (operation: Operation) => string | Uint8Array<ArrayBuffer>>> = {
    'that is a list': () => '[]',
    'that is null': () => 'null',
    'that is a text': () => '"text"',
    'that is a number out of range': () => '1e999',
    'that is nested 30,000 times': () => '['.repeat(30_000) + ']'.repeat(30_000),
    'that ends in its middle': ({ body }) => JSON.stringify(body ?? {}).slice(0, -1),
    'that is not UTF-8': () => new Uint8Array([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]),
    'that is UTF-16': () => new Uint8Array(Buffer.from('\ufeff{"email":1}', 'utf16le')),
  }

  test.each(Object.keys(hostile))('%s is refused by every operation', async (name) => {
    const outcomes = await inParallel(withBody, (operation) =>
      attack({ operation, label: name, sending: { bytes: hostile[name]?.(operation) ?? '' } }),
    )
    expect(outcomes.filter(({ received }) => received.status < 400).map(describeOutcome)).toEqual([])
    expect(failuresOf(outcomes)).toEqual([])
  })

  const values: Readonly<Record<string, Json>> = {
    'a NUL': 'a\0b',
    'a lone surrogate': 'a\ud800b',
    'a text of 60 KB': 'x'.repeat(60_000),
    'a list': [[]],
    'an object': { toString: 'x', valueOf: 'x', length: -1 },
    'a huge number': 1e308,
    'a negative number': -1,
    'a control character': '\u001b[2J\r\nX-Injected: 1',
  }

  test.each(Object.keys(values))('with %s in any field fails no operation', async (name) => {
    const attacks = withBody.flatMap((operation) =>
      bodyFields(operation)
        .filter((path) => name === 'a NUL' || !path.join().includes('password'))
        .map(
          (path): Attack => ({
            operation,
            label: `${path.join('.')} is ${name}`,
            sending: { body: withField(operation.body, path, values[name] ?? null) },
          }),
        ),
    )
    const outcomes = await inParallel(attacks, attack)
    expect(failuresOf(outcomes)).toEqual([])
    expect(outcomes.filter(({ received }) => received.headers.has('x-injected'))).toEqual([])
  })

  test('with an unknown field that is nested 5,000 times fails no operation', async () => {
    const bytes = `${'{"unknown":'.repeat(5000)}1${'}'.repeat(5000)}`
    const attacks = withBody.map((operation): Attack => ({ operation, label: 'nested', sending: { bytes } }))
    expect(failuresOf(await inParallel(attacks, attack))).toEqual([])
  })

  test('with keys of prototypes changes no object of the process', async () => {
    const polluted = withBody.flatMap((operation): Attack[] => {
      const fields = JSON.stringify(operation.body ?? {})
      const keys = [`{"__proto__":${fields}}`, `{"constructor":{"prototype":${fields}}}`, `{"__proto__":null}`]
      return keys.map((bytes) => ({ operation, label: bytes.slice(0, 30), sending: { bytes } }))
    })
    expect(failuresOf(await inParallel(polluted, attack))).toEqual([])
    // With inherited fields, an empty object would have all that are required.
    const requiring = withBody.filter(({ bodySchema }) => (bodySchema as { required?: string[] }).required?.length)
    const outcomes = await inParallel(requiring, (operation) =>
      attack({ operation, label: '{}', sending: { body: {} } }),
    )
    expect(requiring.length).toBeGreaterThan(15)
    expect(outcomes.filter(({ received }) => ![400, 404].includes(received.status)).map(describeOutcome)).toEqual([])
  })

  test('with a repeated key has the value of the last one, as in its check', async () => {
    const login = operations.find(({ template }) => template.endsWith('/auth/login')) as Operation
    const { email, password } = victim
    const bytes = `{"email":"other@example.com","email":"${email}","password":"${password}"}`
    const { received } = await attack({ operation: login, label: 'repeated', sending: { bytes } })
    expect(received.status).toBe(200)
  })

  test.each(['utf-7', 'utf-16', 'utf-32', 'iso-8859-1', 'shift_jis', 'utf-8; charset=utf-7"'])(
    'in the charset %s is refused by every operation',
    async (charset) => {
      const headers = { 'Content-Type': `application/json; charset=${charset}` }
      const outcomes = await inParallel(withBody, (operation) =>
        attack({ operation, label: charset, sending: { headers, bytes: '+AHsAfQ-' } }),
      )
      expect(
        outcomes.filter(({ received }) => ![400, 404, 415].includes(received.status)).map(describeOutcome),
      ).toEqual([])
    },
  )

  test.each(['application/x-www-form-urlencoded', 'text/plain', 'multipart/form-data; boundary=x', 'text/html'])(
    'of the type %s, which a form of another site can send, is refused by every operation',
    async (type) => {
      const outcomes = await inParallel(withBody, (operation) =>
        attack({ operation, label: type, sending: { headers: { 'Content-Type': type }, bytes: '{}' } }),
      )
      expect(outcomes.filter(({ received }) => received.status !== 415).map(describeOutcome)).toEqual([])
    },
  )
})

describe('a compressed body', () => {
  const bomb = Buffer.alloc(100_000_000, 0x20)
  const compressed = { gzip: gzipSync(bomb), deflate: deflateSync(bomb), br: brotliCompressSync(bomb.subarray(0, 2e7)) }
  const residentBytes = async () => (await readMetrics(api))('process_resident_memory_bytes') ?? Number.NaN

  test.each(Object.keys(compressed) as (keyof typeof compressed)[])(
    'in %s that grows to 100 MB is refused without its memory',
    async (encoding) => {
      const before = await residentBytes()
      const bytes = new Uint8Array(compressed[encoding])
      const outcomes = await inParallel(withBody, (operation) =>
        attack({ operation, label: encoding, sending: { headers: { 'Content-Encoding': encoding }, bytes } }),
      )
      expect(
        outcomes.filter(({ received }) => ![400, 413, 415].includes(received.status)).map(describeOutcome),
      ).toEqual([])
      expect((await residentBytes()) - before).toBeLessThan(200_000_000)
    },
  )

  test('is not decompressed for a signature', async () => {
    const response = await fetch(`${api.url}/api/v1/billing/webhook`, {
      method: 'POST',
      headers: { 'Content-Encoding': 'gzip' },
      body: new Uint8Array(gzipSync('{}')),
    })
    expect(response.status).toBe(401)
  })
})

describe('a URL for notifications', () => {
  const hosts = [
    '127.0.0.1',
    '127.1',
    '2130706433',
    '0x7f000001',
    '0177.0.0.1',
    '0',
    '0.0.0.0',
    'localhost',
    'localhost.',
    '10.0.0.1',
    '172.16.0.1',
    '192.168.1.1',
    '100.64.0.1',
    '169.254.169.254',
    '0xa9fea9fe',
    '2852039166',
    '168.63.129.16',
    '224.0.0.1',
    '255.255.255.255',
    '198.18.0.1',
    '192.0.2.1',
    '[::1]',
    '[::]',
    '[fe80::1]',
    '[fc00::1]',
    '[fd00:ec2::254]',
    '[::ffff:127.0.0.1]',
    '[::ffff:a9fe:a9fe]',
    '[::127.0.0.1]',
    '[64:ff9b::7f00:1]',
    '[64:ff9b::a9fe:a9fe]',
    '[2002:7f00:1::]',
    '[2001::1]',
    '[ff02::1]',
    '①②⑦.⓪.⓪.①',
    '127。0。0。1',
    'user@127.0.0.1',
    '1.1.1.1@127.0.0.1',
    '1.1.1.1:22',
    '1.1.1.1:80',
    'internal',
    'db.local',
  ]
  const save = (url: string, type = 'webhook') =>
    api.post('/notifications/endpoint', { type, url }, { bearer: attacker.bearer })

  test('with a public address is saved, so the others are refused for their host alone', async () => {
    expect((await save('https://1.1.1.1/hook')).status).toBe(201)
    expect((await api.delete('/notifications/endpoint', { bearer: attacker.bearer })).status).toBe(204)
  })

  test('of a private, reserved or local address in any notation is refused', async () => {
    const answers = await inParallel(hosts, async (host) => ({ host, status: (await save(`https://${host}/`)).status }))
    expect(answers.filter(({ status }) => status !== 400)).toEqual([])
  })

  test('of another scheme, or of a host that only resembles Discord, is refused', async () => {
    const urls = [
      'http://1.1.1.1/',
      'ftp://1.1.1.1/',
      'file:///etc/passwd',
      'gopher://1.1.1.1/',
      '//1.1.1.1/',
      'https:',
    ]
    const path = '/api/webhooks/1/x'
    const hostsOfOthers = [
      'discord.com.evil.example',
      'discord.com@127.0.0.1',
      'evil.example',
      'xdiscord.com',
      'discord.com:22',
    ]
    const answers = await inParallel(
      [
        ...urls.map((url) => ({ url, type: 'webhook' })),
        ...hostsOfOthers.map((host) => ({ url: `https://${host}${path}`, type: 'discord' })),
      ],
      async ({ url, type }) => ({ url, status: (await save(url, type)).status }),
    )
    expect(answers.filter(({ status }) => status !== 400)).toEqual([])
    expect(await sql`select 1 from notification_endpoints where user_id = ${attacker.userId}`).toHaveLength(0)
  })
})
