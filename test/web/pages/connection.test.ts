/** The page of a connection in a browser without scripts, and the list of connections. */
import sharp from 'sharp'
import { expect, test } from 'vitest'
import { slateBytesMax } from '../../../domain/relay/slates.ts'
import { startFakeRelayService } from '../../support/fake-relays.ts'
import type { RelayUser } from '../../support/relays.ts'
import { freeSiteUrl, startSite } from '../../support/site.ts'

const siteUrl = await freeSiteUrl()
const service = await startFakeRelayService({
  variables: { SVC_SITE_URL: siteUrl, SVC_RATE_LIMITS: 'login=1000' },
})
const site = await startSite(service.api, { SVC_SITE_URL: siteUrl })

interface Connections {
  readonly connections: readonly { readonly name: string; readonly on_loss: string; readonly slate: string | null }[]
}

const read = async ({ bearer }: RelayUser, name = 'phone') =>
  (await service.api.get<Connections>('/relay/connections', { bearer })).body.connections.find(
    (connection) => connection.name === name,
  )

async function givenConnection(name = 'phone') {
  const user = await service.user()
  const { session } = (await user.start({ connection_id: name })).body
  const browser = site.browser()
  await browser.post('/login', { email: user.email, password: user.password })
  return { user, browser, session }
}

const pictureOf = (width: number, height: number) =>
  sharp({ create: { width, height, channels: 3, background: '#884422' } })
    .png()
    .toBuffer()

/** As a browser sends it. A field without a file is sent as an empty file without a name. */
function formOf(mode: string, picture: Uint8Array<ArrayBuffer> = new Uint8Array(), name = '', type = 'image/png') {
  const form = new FormData()
  form.set('on_loss', mode)
  form.set('picture', new Blob([picture], { type }), name)
  return form
}
const bytesOf = (buffer: Buffer) => new Uint8Array(buffer)

test('a connection is found from its relay and in the list, which says what its players see', async () => {
  const { user, browser } = await givenConnection()
  expect((await browser.open('/relays')).links).toEqual(expect.arrayContaining(['/connections', '/connections/phone']))
  const list = await browser.open('/connections')
  expect(list).toMatchObject({ status: 200, name: 'connections' })
  expect(list.data('connection')).toEqual(['phone'])
  expect(list.text).toContain('players keep the last picture, with silence')
  const page = await browser.open('/connections/phone')
  expect(page).toMatchObject({ status: 200, name: 'connection' })
  expect(page.form('/connections/phone').fields.on_loss).toBe('freeze')
  expect(page.data('now')).toEqual(['freeze'])
  expect(page.data('slate')).toEqual(['built-in'])
  await user.stop({ connection_id: 'phone', immediate: true })
  expect((await browser.open('/connections/phone')).text).toContain('a change applies from the next start')
})

test('an account without connections is led to its first relay', async () => {
  const user = await service.user()
  const browser = site.browser()
  await browser.post('/login', { email: user.email, password: user.password })
  expect((await browser.open('/connections')).text).toContain('No connections yet')
})

test.each(['hold', 'freeze', 'slate'])('what players see becomes %s, without a picture', async (mode) => {
  const { user, browser } = await givenConnection()
  const saved = await browser.post('/connections/phone', formOf(mode))
  expect(saved).toMatchObject({ path: '/connections/phone?done=saved', name: 'connection', notice: 'saved' })
  expect(saved.data('now')).toEqual([mode])
  expect(await read(user)).toMatchObject({ on_loss: mode, slate: null })
})

test('a picture is uploaded, shown, replaced and removed', async () => {
  const { user, browser } = await givenConnection()
  const saved = await browser.post(
    '/connections/phone',
    formOf('slate', bytesOf(await pictureOf(640, 360)), 'back.png'),
  )
  expect(saved.notice).toBe('saved')
  expect(saved.text).toContain('players see your picture, with silence')
  const first = await read(user)
  expect(first).toMatchObject({ on_loss: 'slate', slate: expect.stringMatching(/^[0-9a-f]{64}$/) })
  expect(saved.data('slate')).toEqual([first?.slate])

  const path = '/api/v1/relay/connections/phone/slate'
  expect(saved.html).toContain(`src="${path}"`)
  const image = await browser.request('GET', path)
  expect([image.status, image.headers.get('content-type')]).toEqual([200, 'image/jpeg'])
  expect(image.headers.get('x-content-type-options')).toBe('nosniff')

  await browser.post('/connections/phone', formOf('slate', bytesOf(await pictureOf(320, 180)), 'other.png'))
  expect((await read(user))?.slate).not.toBe(first?.slate)

  const removed = await browser.submit(saved, '/connections/phone/slate/remove')
  expect(removed).toMatchObject({ notice: 'slate_removed' })
  expect(removed.data('slate')).toEqual(['built-in'])
  expect(await read(user)).toMatchObject({ on_loss: 'slate', slate: null })
  expect((await browser.post('/connections/phone/slate/remove', {})).notice).toBe('slate_removed')
})

test('a picture without its mode is kept, and the page says that it is not shown yet', async () => {
  const { user, browser } = await givenConnection()
  const saved = await browser.post('/connections/phone', formOf('hold', bytesOf(await pictureOf(64, 64)), 'a.png'))
  expect(saved.notice).toBe('slate_saved')
  expect(await read(user)).toMatchObject({ on_loss: 'hold', slate: expect.any(String) })
})

test.each([
  ['text', Buffer.from('not a picture'), 400, 'invalid_image', 'neither a PNG nor a JPEG'],
  ['no byte', Buffer.alloc(0), 400, 'invalid_image', 'no image'],
  ['half a megabyte more than is allowed', Buffer.alloc(slateBytesMax + 500_000), 413, 'payload_too_large', '4 MB'],
  ['a byte more than is allowed', Buffer.alloc(slateBytesMax + 1), 400, 'invalid_image', '4 MB'],
])('a file of %s is refused beside its field, and nothing is changed', async (_, file, status, code, text) => {
  const { user, browser } = await givenConnection()
  const refused = await browser.post('/connections/phone', formOf('slate', bytesOf(file), 'file.png'))
  expect(refused).toMatchObject({ status, name: 'connection', problem: code })
  expect(refused.text).toContain(text)
  expect(refused.html).toMatch(/<input id="picture"[^>]* aria-describedby="problem picture-help"[^>]* aria-invalid/)
  expect(await read(user)).toMatchObject({ on_loss: 'freeze', slate: null })
})

test('a refused picture keeps the mode that was chosen with it', async () => {
  const { browser } = await givenConnection()
  const refused = await browser.post('/connections/phone', formOf('slate', bytesOf(Buffer.from('text')), 'a.png'))
  expect(refused.form('/connections/phone').fields.on_loss).toBe('slate')
  expect(refused.data('now')).toEqual(['freeze'])
})

test('a mode that does not exist is refused beside the choice', async () => {
  const { user, browser } = await givenConnection()
  const refused = await browser.post('/connections/phone', formOf('black'))
  expect(refused).toMatchObject({ status: 400, problem: 'invalid_request' })
  expect(refused.html).toMatch(/<fieldset[^>]* aria-describedby="problem"/)
  expect(await read(user)).toMatchObject({ on_loss: 'freeze' })
})

test.each(['', 'text/plain', 'multipart/form-data', 'multipart/form-data; boundary=x'])(
  'a body of type "%s" that is no form is refused',
  async (type) => {
    const { user, browser } = await givenConnection()
    const reply = await browser.request('POST', '/connections/phone', {
      body: '--x\r\nbroken',
      headers: { 'Content-Type': type },
    })
    expect(reply.status).toBe(400)
    expect(await read(user)).toMatchObject({ on_loss: 'freeze' })
  },
)

test('a form of another site, and a connection of another account, change nothing', async () => {
  const { user, browser } = await givenConnection()
  const foreign = await browser.post('/connections/phone', formOf('hold'), { from: 'cross-site' })
  expect(foreign.status).toBe(403)
  const other = await givenConnection('theirs')
  for (const path of ['/connections/phone', '/connections/phone/slate/remove'])
    expect((await other.browser.post(path, formOf('hold'))).status).toBe(404)
  expect((await other.browser.open('/connections/phone')).status).toBe(404)
  expect((await other.browser.request('GET', '/api/v1/relay/connections/phone/slate')).status).toBe(404)
  expect(await read(user)).toMatchObject({ on_loss: 'freeze' })
})

test('a visitor who is not signed in is led to the sign-in and back to the list', async () => {
  const page = await site.browser().post('/connections/phone', formOf('hold'))
  expect(page).toMatchObject({ name: 'login', path: '/login?next=%2Fconnections' })
})

test('a name that cannot be a segment of a path is listed without a link', async () => {
  const { browser } = await givenConnection('.hidden')
  const list = await browser.open('/connections')
  expect(list.data('connection')).toEqual(['.hidden'])
  expect(list.links.filter((link) => link.startsWith('/connections/'))).toEqual([])
  expect((await browser.open('/connections/.hidden')).status).toBe(404)
})
