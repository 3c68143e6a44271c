/** The page of play keys in a browser without scripts. */
import { expect, test } from 'vitest'
import { ownPlayKeysMax } from '../../../domain/relay/play-keys.ts'
import type { GivenUser } from '../../support/api.ts'
import { startFakeRelayService } from '../../support/fake-relays.ts'
import { freeSiteUrl, startSite } from '../../support/site.ts'

const siteUrl = await freeSiteUrl()
/** Its relays report once only. */
const service = await startFakeRelayService({
  variables: {
    SVC_SITE_URL: siteUrl,
    SVC_RATE_LIMITS: 'login=1000,relay_history=1000',
    SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '300',
  },
})
const { api } = service
const site = await startSite(api, { SVC_SITE_URL: siteUrl })

interface PlayKeys {
  readonly play_keys: readonly { readonly id: string; readonly name: string; readonly key: string }[]
  readonly play_with_keys_only: boolean
}
const read = async ({ bearer }: GivenUser) => (await api.get<PlayKeys>('/relay/play-keys', { bearer })).body

async function signedIn(user: GivenUser) {
  const browser = site.browser()
  await browser.post('/login', { email: user.email, password: user.password })
  return browser
}

async function givenVisitor() {
  const user = await api.given.user()
  return { user, browser: await signedIn(user) }
}

test('a key is created with a name, shown with its text hidden, and deleted after a confirmation', async () => {
  const { user, browser } = await givenVisitor()
  const empty = await browser.open('/account/keys')
  expect(empty).toMatchObject({ status: 200, name: 'account-keys' })
  expect(empty.data('play-key')).toEqual([])

  const made = await browser.submit(empty, '/account/keys', { name: 'Studio PC', connection_id: '' })
  expect(made).toMatchObject({ name: 'account-keys', notice: 'created' })
  const [key] = (await read(user)).play_keys
  expect(made.data('play-key')).toEqual([key?.id])
  for (const text of ['Studio PC', 'Made by you', 'not used yet']) expect(made.text).toContain(text)
  // The key is in a closed element only.
  const html = made.html.replaceAll(/<details data-secret.*?<\/details>/gs, '')
  expect(made.html).toContain(key?.key)
  expect(html).not.toContain(key?.key)

  const question = await browser.open(`/account/keys/${key?.id}/delete`)
  expect(question.text).toContain('Players that use it are disconnected')
  const left = await browser.submit(question, `/account/keys/${key?.id}/delete`)
  expect(left).toMatchObject({ name: 'account-keys', notice: 'deleted' })
  expect((await read(user)).play_keys).toEqual([])
  expect((await browser.open('/account/activity')).text).toContain('Play key deleted')
})

test('a blank name and a key of another account are refused with the way out', async () => {
  const { user, browser } = await givenVisitor()
  const refused = await browser.submit(await browser.open('/account/keys'), '/account/keys', {
    name: ' ',
    connection_id: '',
  })
  expect(refused).toMatchObject({ status: 400, problem: 'invalid_request' })
  expect(refused.text).toContain('Give the key a name')
  expect(refused.html).toMatch(/<input id="name"[^>]* aria-describedby="problem name-help"[^>]* aria-invalid="true"/)
  const other = await givenVisitor()
  const { body } = await api.post<{ id: string }>('/relay/play-keys', { name: 'theirs' }, { bearer: other.user.bearer })
  expect(await browser.open(`/account/keys/${body.id}/delete`)).toMatchObject({ name: 'account-keys' })
  const denied = await browser.post(`/account/keys/${body.id}/delete`, {})
  expect([denied.status, denied.problem]).toEqual([404, 'not_found'])
  expect((await read(other.user)).play_keys).toHaveLength(1)
  expect((await read(user)).play_keys).toEqual([])
})

test('a refused key keeps the connection that was chosen for it', async () => {
  const user = await service.user()
  const { session } = (await user.start({ connection_id: 'backpack' })).body
  await user.stop({ session_id: session.session_id, immediate: true })
  const browser = await signedIn(user)
  const form = await browser.open('/account/keys')
  const refused = await browser.submit(form, '/account/keys', { name: ' ', connection_id: 'backpack' })
  expect(refused.form('/account/keys').fields).toEqual({ name: ' ', connection_id: 'backpack' })
  const unknown = await browser.submit(form, '/account/keys', { name: 'Studio PC', connection_id: 'unknown' })
  expect([unknown.status, unknown.problem]).toEqual([404, 'not_found'])
  expect(unknown.html).toMatch(/<select id="connection"[^>]* aria-describedby="problem"[^>]* aria-invalid="true"/)
})

/** The id and the text of each playback address on the page. */
const addressesOn = ({ html }: { readonly html: string }) =>
  new Map(
    [...html.matchAll(/<code class="code" id="address-([^"]+)">([^<]*)<\/code>/g)].map(([, id = '', address = '']) => [
      id,
      address,
    ]),
  )

test('a key is shown in the playback address of each relay that it opens, with a QR code for its owner only', async () => {
  const user = await service.user()
  const [phone, backpack] = [
    await service.startActiveRelay(user, { connection_id: 'phone' }),
    await service.startActiveRelay(user, { connection_id: 'backpack' }),
  ]
  const create = async (name: string, connection_id: string | null) =>
    (await api.post<{ id: string; key: string }>('/relay/play-keys', { name, connection_id }, { bearer: user.bearer }))
      .body
  const [all, some] = [await create('Studio PC', null), await create('Co-host', 'backpack')]
  const browser = await signedIn(user)
  const page = await browser.open('/account/keys')
  const addresses = addressesOn(page)
  const withKey = (session: typeof phone, key: string) =>
    session.connect?.player_url.replace(/play\/live\/[^&]+/, `play/live/${key}`)
  expect(addresses.get(`${all.id}-${phone.session_id}`)).toBe(withKey(phone, all.key))
  expect(addresses.get(`${all.id}-${backpack.session_id}`)).toBe(withKey(backpack, all.key))
  expect(addresses.get(`${some.id}-${backpack.session_id}`)).toBe(withKey(backpack, some.key))
  // Those of the two connections are shown too, each for its own relay.
  expect(addresses.size).toBe(5)
  const outside = page.html.replaceAll(/<details data-secret.*?<\/details>/gs, '')
  for (const { key } of [all, some]) expect(outside).not.toContain(key)

  const images = [...page.html.matchAll(/<img class="qr[^"]*" data-src="([^"]*)"/g)].map(([, path = '']) => path)
  expect(images).toHaveLength(5)
  for (const path of images) {
    const image = await browser.request('GET', path)
    expect([image.status, image.headers.get('content-type')]).toEqual([200, 'image/svg+xml'])
  }
  const path = `/account/keys/${some.id}/qr/${backpack.session_id}`
  expect(images).toContain(path)
  expect((await browser.open(`/account/keys/${some.id}/qr/${phone.session_id}`)).status).toBe(404)
  expect((await (await givenVisitor()).browser.open(path)).status).toBe(404)
  await user.stop({ session_id: backpack.session_id, immediate: true })
  expect((await browser.open(path)).status).toBe(404)
})

test('an account with the most keys is asked to delete one', async () => {
  const { user, browser } = await givenVisitor()
  for (let index = 0; index < ownPlayKeysMax; index += 1)
    await api.post('/relay/play-keys', { name: `key ${index}` }, { bearer: user.bearer })
  const page = await browser.open('/account/keys')
  expect(page.text).toContain(`You have ${ownPlayKeysMax} keys, which is the most`)
})

test('players need a key once the owner has chosen so, and not any more after the box is cleared', async () => {
  const { user, browser } = await givenVisitor()
  const page = await browser.open('/account/keys')
  const saved = await browser.submit(page, '/account/keys/access', { play_with_keys_only: 'on' })
  expect(saved).toMatchObject({ notice: 'access_saved' })
  expect((await read(user)).play_with_keys_only).toBe(true)
  await browser.post('/account/keys/access', {})
  expect((await read(user)).play_with_keys_only).toBe(false)
})
