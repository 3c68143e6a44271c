/** What players see while no stream arrives: how the owner of a connection sets it, and what relays get of it. */
import { createHash } from 'node:crypto'
import sharp from 'sharp'
import { beforeAll, describe, expect, test } from 'vitest'
import { builtInSlate } from '../../../../api/slates/built-in-slate.ts'
import { slateBytesMax } from '../../../../domain/relay/slates.ts'
import { instanceSecret } from '../../../../providers/relay/instance-secrets.ts'
import { statusAndCode } from '../../../support/api.ts'
import { highLimits } from '../../../support/environment.ts'
import { writeActive } from '../../../support/relay-rows.ts'
import { type RelayUser, startService, type TestService } from '../../../support/relays.ts'
import { assignInstance, insertWarmInstance } from '../../../support/unbound-relays.ts'

const master = 'a master secret of relays for the tests of slates'
const uploadsMax = 10
let service: TestService
beforeAll(async () => {
  service = await startService({
    worker: false,
    variables: { SVC_RATE_LIMITS: highLimits({ slate_upload: uploadsMax }), SVC_RELAY_AUTH_SECRET: master },
  })
})

interface Connection {
  readonly name: string
  readonly on_loss: string
  readonly slate: string | null
}
interface Admission {
  readonly revision: number
  readonly on_loss: string
  readonly slate: string | null
  readonly stream_format: object | null
}

const picture = (background: string, { width = 64, height = 36 } = {}) =>
  sharp({ create: { width, height, channels: 3, background } })
    .png()
    .toBuffer()
const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

async function send<Body = Partial<Connection>>(
  path: string,
  { bearer, ...init }: { bearer?: string; method?: string; headers?: Record<string, string>; body?: Buffer | string },
) {
  const { body, ...rest } = init
  const response = await fetch(`${service.api.url}/api/v1/relay/${path}`, {
    ...rest,
    headers: { ...(bearer ? { Authorization: `Bearer ${bearer}` } : {}), ...init.headers },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : new Uint8Array(body) }),
  })
  const { status, headers } = response
  const bytes = Buffer.from(await response.arrayBuffer())
  const isJson = headers.get('content-type')?.startsWith('application/json')
  return { status, headers, bytes, body: (isJson ? JSON.parse(bytes.toString()) : {}) as Body }
}

const upload = ({ bearer }: RelayUser, body: Buffer, { name = 'default', type = 'image/png' } = {}) =>
  send(`connections/${name}/slate`, { bearer, method: 'PUT', headers: { 'Content-Type': type }, body })
const show = ({ bearer }: RelayUser, name = 'default') => send(`connections/${name}/slate`, { bearer })
const remove = ({ bearer }: RelayUser, name = 'default') =>
  send(`connections/${name}/slate`, { bearer, method: 'DELETE' })
const change = ({ bearer }: RelayUser, body: object, name = 'default') =>
  send(`connections/${name}`, {
    bearer,
    method: 'PATCH',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })
const read = async ({ bearer }: RelayUser, name = 'default') => {
  const { body } = await service.api.get<{ connections: Connection[] }>('/relay/connections', { bearer })
  return body.connections.find((connection) => connection.name === name)
}

async function givenConnection() {
  const user = await service.user()
  const { session_id: sessionId } = (await user.start()).body.session
  return { user, sessionId }
}

/** A session with a relay that reports as this version does. */
async function givenRelay() {
  const { user, sessionId } = await givenConnection()
  const instanceId = await insertWarmInstance(service.api.sql)
  await assignInstance(service.api.sql, instanceId, sessionId)
  const headers = { 'X-Relay-Auth': instanceSecret(master, instanceId) }
  const report = async (body: object) =>
    (
      await service.api.post<{ admission?: Admission; assignment?: { admission: Admission } }>(
        '/relay/health',
        { instance_id: instanceId, session_id: sessionId, ...body },
        { headers },
      )
    ).body
  const assigned = async () =>
    (await report({ session_id: null, admission_revision: null })).assignment?.admission as Admission
  const begin = async () => {
    const admission = await assigned()
    await writeActive(service.api.sql, sessionId, instanceId)
    return admission
  }
  const admissionAfter = async (revision: number) => (await report({ admission_revision: revision })).admission
  const fetchSlate = (digest: string) => send(`slate/${digest}`, { headers })
  return { user, sessionId, instanceId, report, assigned, begin, admissionAfter, fetchSlate }
}

describe('what players see while no stream arrives', () => {
  test('is the last picture for a new connection, and changes to each mode', async () => {
    const { user } = await givenConnection()
    expect(await read(user)).toMatchObject({ on_loss: 'freeze', slate: null })
    for (const mode of ['slate', 'hold', 'freeze']) {
      const { status, body } = await change(user, { on_loss: mode })
      expect([status, body]).toEqual([200, await read(user)])
      expect(body.on_loss).toBe(mode)
    }
  })

  test.each([[{ on_loss: 'black' }], [{ on_loss: null }], [{ on_loss: 'HOLD' }], [{}]])(
    'is refused as %j',
    async (body: object) => {
      const { user } = await givenConnection()
      expect(statusAndCode(await change(user, body))).toEqual([400, 'invalid_request'])
      expect(await read(user)).toMatchObject({ on_loss: 'freeze' })
    },
  )

  test('stays as it is at the next start, and begins again for a connection that was deleted', async () => {
    const { user, sessionId } = await givenConnection()
    await change(user, { on_loss: 'slate' })
    await upload(user, await picture('#ff0000'))
    await service.api.sql`
      update relay_sessions set state = 'stopped', reason = 'stop_requested', stopped_at = now(), pair_token_sealed = null,
        pair_token_hash = null, relay_ws_token_sealed = null, relay_ws_token_hash = null where id = ${sessionId}`
    await user.start()
    expect(await read(user)).toMatchObject({ on_loss: 'slate', slate: expect.any(String) })
    await service.api.sql`update relay_sessions set state = 'stopped', reason = 'stop_requested', stopped_at = now(),
      pair_token_sealed = null, pair_token_hash = null, relay_ws_token_sealed = null, relay_ws_token_hash = null
      where user_id = ${user.userId} and state <> 'stopped'`
    expect((await service.api.delete('/relay/connections/default', { bearer: user.bearer })).status).toBe(204)
    expect(await service.api.sql`select from slates where user_id = ${user.userId}`).toHaveLength(0)
    await user.start()
    expect(await read(user)).toMatchObject({ on_loss: 'freeze', slate: null })
  })
})

describe('the image of a connection', () => {
  test('is stored as JPEG without what the upload had besides its picture, shown, replaced and deleted', async () => {
    const { user } = await givenConnection()
    const plain = await sharp(await picture('#ff0000'))
      .withExif({ IFD0: { Copyright: 'the name of the owner' } })
      .toBuffer()
    const { status, body } = await upload(user, Buffer.concat([plain, Buffer.from('<script>hidden</script>')]))
    expect([status, body]).toEqual([200, await read(user)])
    const shown = await show(user)
    expect(shown.headers.get('content-type')).toBe('image/jpeg')
    expect(sha256(shown.bytes)).toBe(body.slate)
    expect(await sharp(shown.bytes).metadata()).toMatchObject({ format: 'jpeg', width: 64, height: 36, channels: 3 })
    for (const text of ['the name of the owner', 'hidden', 'Exif']) expect(shown.bytes.includes(text)).toBe(false)

    const replaced = (await upload(user, await picture('#00ff00'), { type: 'text/plain' })).body.slate
    expect(replaced).not.toBe(body.slate)
    expect(await service.api.sql`select digest from slates where user_id = ${user.userId}`).toEqual([
      { digest: replaced },
    ])
    expect((await remove(user)).status).toBe(204)
    expect(await read(user)).toMatchObject({ slate: null })
    expect(statusAndCode(await show(user))).toEqual([404, 'not_found'])
    expect(statusAndCode(await remove(user))).toEqual([404, 'not_found'])
  })

  test('is that of one account: for another one there is nothing to see or to change', async () => {
    const [{ user }, other] = [await givenConnection(), await service.user()]
    await upload(user, await picture('#ff0000'))
    const before = await read(user)
    const answers = [
      await change(other, { on_loss: 'slate' }),
      await upload(other, await picture('#0000ff')),
      await show(other),
      await remove(other),
      await upload(user, await picture('#0000ff'), { name: 'unknown' }),
      await change(user, { on_loss: 'slate' }, 'not%20a%20name'),
    ]
    expect(answers.map(statusAndCode)).toEqual(answers.map(() => [404, 'not_found']))
    expect(await read(user)).toEqual(before)
  })

  test('needs an access token before its bytes are read', async () => {
    const answer = await send('connections/default/slate', { method: 'PUT', body: await picture('#ff0000') })
    expect(statusAndCode(answer)).toEqual([401, 'unauthorized'])
  })

  test(`is refused with more than 4 MB, and after ${uploadsMax} uploads a minute`, async () => {
    const { user } = await givenConnection()
    const large = Buffer.concat([await picture('#ff0000'), Buffer.alloc(slateBytesMax)])
    const refused = await upload(user, large.subarray(0, slateBytesMax + 1))
    expect(statusAndCode(refused)).toEqual([400, 'invalid_image'])
    expect(JSON.stringify(refused.body)).toContain('more than 4 MB')
    expect((await upload(user, large.subarray(0, slateBytesMax))).status).toBe(200)
    const small = await picture('#ff0000')
    for (let count = 2; count < uploadsMax; count += 1) expect((await upload(user, small)).status).toBe(200)
    expect(statusAndCode(await upload(user, small))).toEqual([429, 'rate_limited'])
  })

  test('is whole after concurrent uploads: that of one of them', async () => {
    const { user } = await givenConnection()
    const images = await Promise.all(['#ff0000', '#00ff00', '#0000ff', '#ffff00'].map((colour) => picture(colour)))
    const answers = await Promise.all(images.map((image) => upload(user, image)))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    const digests = answers.map(({ body }) => body.slate)
    expect(new Set(digests).size).toBe(4)
    expect(digests).toContain((await read(user))?.slate)
    expect(sha256((await show(user)).bytes)).toBe((await read(user))?.slate)
  })

  test('is in the export of the account in base64, and erased with it', async () => {
    const { user } = await givenConnection()
    await upload(user, await picture('#ff0000'))
    const { bytes } = await show(user)
    const { body } = await service.api.get<{ tables: { slates: { image: string }[] } }>('/auth/account/export', {
      bearer: user.bearer,
    })
    expect(body.tables.slates.map(({ image }) => Buffer.from(image, 'base64'))).toEqual([bytes])
    await service.api.sql`delete from users where id = ${user.userId}`
    expect(await service.api.sql`select from slates where user_id = ${user.userId}`).toHaveLength(0)
  })
})

describe('a relay', () => {
  const format = {
    video: { codec: 'hevc', profile: 'main', width: 1920, height: 1080, frame_rate: 59.94 },
    audio: { codec: 'aac_adts', sample_rate: 48_000, channels: 2 },
  }

  test('gets mode and image with its assignment, and each change with the reply to its next report', async () => {
    const { user, begin, admissionAfter, fetchSlate } = await givenRelay()
    const builtIn = builtInSlate()
    const assigned = await begin()
    expect(assigned).toMatchObject({ on_loss: 'freeze', slate: builtIn.digest, stream_format: null })
    let { revision } = assigned
    const changed = async (act: () => Promise<unknown>) => {
      expect(await admissionAfter(revision)).toBeUndefined()
      await act()
      const admission = await admissionAfter(revision)
      revision = admission?.revision ?? 0
      return admission
    }
    expect(await changed(() => change(user, { on_loss: 'slate' }))).toMatchObject({
      on_loss: 'slate',
      slate: builtIn.digest,
    })
    const image = await picture('#ff0000')
    const own = await changed(() => upload(user, image))
    expect(own).toMatchObject({ on_loss: 'slate', slate: (await read(user))?.slate })
    const fetched = await fetchSlate(own?.slate ?? '')
    expect([fetched.status, fetched.headers.get('content-type')]).toEqual([200, 'image/jpeg'])
    expect(sha256(fetched.bytes)).toBe(own?.slate)
    expect(await changed(() => remove(user))).toMatchObject({ on_loss: 'slate', slate: builtIn.digest })
    expect(await changed(() => change(user, { on_loss: 'hold' }))).toMatchObject({ on_loss: 'hold', slate: null })
  })

  test('gets no new revision for a change that changes nothing, nor for that of another connection', async () => {
    const { user, begin, admissionAfter } = await givenRelay()
    await user.start({ connection_id: 'other' })
    const image = await picture('#ff0000')
    await upload(user, image)
    const { revision } = await begin()
    await upload(user, image)
    await change(user, { on_loss: 'freeze' })
    await change(user, { on_loss: 'slate' }, 'other')
    await upload(user, image, { name: 'other' })
    expect(await admissionAfter(revision)).toBeUndefined()
  })

  test('reports the format of its stream, which the relay that replaces it gets', async () => {
    const { begin, report, admissionAfter } = await givenRelay()
    const { revision } = await begin()
    await report({ stream_format: format, admission_revision: revision })
    expect((await admissionAfter(revision + 1))?.stream_format).toEqual(format)
    await report({ stream_format: { ...format, audio: null } })
    expect((await admissionAfter(revision + 1))?.stream_format).toEqual({ ...format, audio: null })
  })

  test.each([
    ['an unknown codec', { ...format, video: { ...format.video, codec: 'av1' } }],
    ['a width of nothing', { ...format, video: { ...format.video, width: 0 } }],
    ['a width of a fraction', { ...format, video: { ...format.video, width: 1.5 } }],
    ['a rate of nothing', { ...format, video: { ...format.video, frame_rate: 0 } }],
    ['too many channels', { ...format, audio: { ...format.audio, channels: 9 } }],
    ['text', 'h264'],
    ['null', null],
  ])('whose report has a format with %s has reported nevertheless, and its former format stays', async (_, bad) => {
    const { begin, report, admissionAfter } = await givenRelay()
    const { revision } = await begin()
    await report({ stream_format: format })
    expect(await report({ stream_format: bad })).toMatchObject({ desired: 'run' })
    expect((await admissionAfter(revision + 1))?.stream_format).toEqual(format)
  })

  test('gets the built-in slate by its digest, and no image without its secret or by an unknown digest', async () => {
    const { fetchSlate } = await givenRelay()
    const { digest, image } = builtInSlate()
    const fetched = await fetchSlate(digest)
    expect(fetched.bytes.equals(image)).toBe(true)
    expect(fetched.headers.get('cache-control')).toContain('immutable')
    expect(statusAndCode(await send(`slate/${digest}`, {}))).toEqual([401, 'invalid_relay_auth'])
    for (const unknown of ['0'.repeat(64), digest.toUpperCase(), 'x', `${digest}0`])
      expect(statusAndCode(await fetchSlate(unknown))).toEqual([404, 'not_found'])
  })
})

test('the built-in slate is a JPEG of 1920 × 1080 pixels and at most 60 KB', async () => {
  const { image } = builtInSlate()
  expect(await sharp(image).metadata()).toMatchObject({
    format: 'jpeg',
    width: 1920,
    height: 1080,
    isProgressive: false,
  })
  expect(image.length).toBeLessThan(60 * 1024)
})
