/** The page of play keys in a browser without scripts. */
import { expect, test } from 'vitest'
import { ownPlayKeysMax } from '../../../domain/relay/play-keys.ts'
import type { GivenUser } from '../../support/api.ts'
import { startApiAndSite } from '../../support/site.ts'

const { api, site } = await startApiAndSite({ api: { SVC_RATE_LIMITS: 'relay_history=1000' } })

interface PlayKeys {
  readonly play_keys: readonly { readonly id: string; readonly name: string; readonly key: string }[]
  readonly play_with_keys_only: boolean
}
const read = async ({ bearer }: GivenUser) => (await api.get<PlayKeys>('/relay/play-keys', { bearer })).body

async function givenVisitor() {
  const user = await api.given.user()
  const browser = site.browser()
  await browser.post('/login', { email: user.email, password: user.password })
  return { user, browser }
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
  const other = await givenVisitor()
  const { body } = await api.post<{ id: string }>('/relay/play-keys', { name: 'theirs' }, { bearer: other.user.bearer })
  expect(await browser.open(`/account/keys/${body.id}/delete`)).toMatchObject({ name: 'account-keys' })
  const denied = await browser.post(`/account/keys/${body.id}/delete`, {})
  expect([denied.status, denied.problem]).toEqual([404, 'not_found'])
  expect((await read(other.user)).play_keys).toHaveLength(1)
  expect((await browser.open(`/account/keys/${body.id}/qr.svg`)).status).toBe(404)
  expect((await read(user)).play_keys).toEqual([])
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
