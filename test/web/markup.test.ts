/**
 * Markup in every text that a user, an operator, a relay, a billing provider or a configuration can set is shown as
 * text.
 */
import { expect, test } from 'vitest'
import { pages } from '../../web/pages.ts'
import { givePlan, signUp } from '../support/api.ts'
import { operatorPassword } from '../support/relays.ts'
import { freeSiteUrl, startApiAndSite } from '../support/site.ts'

/** Would be an element with a script, and would end an attribute, a tag, a text area or a script. */
const markup = (name: string) => `"'></textarea></script><x-markup id=${name} onclick=alert(1)>`

const siteUrl = await freeSiteUrl()
const region = { region: 'eu', display_name: markup('region'), provider: 'local', capacity: 5 }
const variables = {
  SVC_SITE_URL: siteUrl,
  SVC_OPERATOR_PASSWORD: operatorPassword,
  SVC_REGIONS: JSON.stringify([region]),
  SVC_MAILBOX: 'true',
  SVC_BRAND_NAME: '<x-markup id=brand>',
  SVC_BILLING_PROVIDER: 'sandbox',
}
const { api, site } = await startApiAndSite({
  api: variables,
  site: { SVC_MAILBOX: 'true', SVC_BRAND_NAME: variables.SVC_BRAND_NAME },
})
const { sql } = api

const downloads = ['/usage.csv', '/account/security/export']

/** Their values are shown again when they are refused. */
const formsWithValues = ['/login', '/sign-up', '/forgot-password', '/relays/start', '/account/security/email']

async function givenMarkup() {
  const user = await signUp(api)
  await api.given.signIn(user, markup('plugin').slice(0, 64))
  const { userId } = user
  await givePlan(sql, userId, 3)
  const [live] = await sql<{ id: string }[]>`
    insert into relay_sessions (user_id, connection_id, region, command_initiator, instance_id, relay_host)
    values (${userId}, 'live', ${markup('session-region')}, 'user', ${markup('instance')}, ${markup('host')}) returning id`
  await sql`update relay_sessions set state = 'active', reason = 'relay_ready', active_at = now() where id = ${live?.id ?? ''}`
  await sql`
    insert into relay_sessions (user_id, connection_id, region, command_initiator, state, reason, stopped_at)
    select ${userId}, 'ended', ${markup('ended-region')}, 'user', 'provisioning', 'start_requested', null`
  await sql`
    update relay_sessions set state = 'stopped', reason = 'provision_failed', stopped_at = now() where connection_id = 'ended'`
  await sql`
    insert into instances (instance_id, session_id, region, provider, provider_id, image, host, unowned_since)
    values (${markup('instance-row')}, ${live?.id ?? null}, ${markup('instance-region')}, ${markup('provider')},
      ${markup('provider-id')}, ${markup('image')}, ${markup('instance-host')}, now() - interval '1 hour')`
  const [event] = await sql<{ id: string }[]>`
    insert into billing_events (provider, event_key, type, user_ref, subscription_id, user_id, event, status, error)
    values ('sandbox', ${markup('event-key')}, ${markup('event-type')}, ${markup('user-ref')}, ${markup('event-subscription')},
      ${userId}, ${sql.json({ note: markup('event') })}, 'parked', ${markup('event-error')}) returning id`
  const [withdrawal] = await sql<{ id: string }[]>`
    insert into withdrawals (user_id, provider, subscription_id, kind, quantity, purchased_at, email, refund_error, refund_failed_at)
    values (${userId}, 'sandbox', ${markup('contract')}, 'plan', 1, now(), ${markup('receipt')}, ${markup('refund-error')}, now())
    returning id`
  await sql`
    insert into subscriptions (provider, subscription_id, kind, user_id, status)
    values ('sandbox', ${markup('subscription')}, 'plan', ${userId}, 'active')`
  await sql`
    insert into jobs (name, runs, failures, last_error) values (${markup('job')}, 1, 1, ${markup('job-error')})`
  await sql`
    insert into audit_entries (initiator, action, user_id, ip, client, client_kind, detail)
    values ('operator', ${markup('action')}, ${userId}, ${markup('address')}, ${markup('client')}, 'plugin',
      ${sql.json({ reason: markup('reason'), percent: markup('percent') })})`
  await sql`
    insert into user_oauth_accounts (user_id, provider, provider_user_id, provider_verified_email)
    values (${userId}, 'twitch', ${markup('identity')}, ${markup('identity-email')})`
  await api.post('/auth/email/resend', {}, { bearer: user.bearer })
  const [mail] = await sql<{ id: string }[]>`select id from outbox_messages order by created_at desc limit 1`
  const ids = { session: live?.id, user: userId, event: event?.id, mail: mail?.id, withdrawal: withdrawal?.id }
  return { user, ids }
}

test('no page contains markup from a text that others set', async () => {
  const { user, ids } = await givenMarkup()
  const browser = site.browser()
  await browser.submit(await browser.open('/login'), '/login', { email: user.email, password: user.password })
  await browser.post('/operator/sign-in', { password: operatorPassword })
  // Not earlier: an address with markup cannot sign in.
  await sql`update users set email = ${`${markup('email')}@example.com`} where id = ${user.userId}`
  await sql`update auth_sessions set user_agent = ${markup('user-agent')} where user_id = ${user.userId} and kind = 'web'`

  const idOf = (path: string): string => {
    if (path.startsWith('/operator/users')) return ids.user
    if (path.startsWith('/operator/billing/withdrawals')) return ids.withdrawal ?? ''
    if (path.startsWith('/operator/billing')) return ids.event ?? ''
    if (path.startsWith('/mailbox')) return ids.mail ?? ''
    return ids.session ?? ''
  }
  const query = new URLSearchParams(
    [
      'q',
      'email',
      'next',
      'done',
      'token',
      'state',
      'region',
      'relay',
      'status',
      'action',
      'cursor',
      'error',
      'attempt',
      'connection_id',
      'reason',
      'url',
    ].map((name) => [name, markup(`query-${name}`)]),
  )
  let shown = ''
  const broken: string[] = []
  for (const { method, path } of pages) {
    if (method !== 'GET') continue
    if (downloads.includes(path)) {
      // Browsers store it, and do not guess a type that could run scripts.
      const { headers } = await browser.request('GET', path)
      expect(headers.get('content-disposition'), path).toMatch(/^attachment;/)
      expect(headers.get('content-type'), path).toMatch(/^(text\/csv|application\/json);/)
      expect(headers.get('x-content-type-options'), path).toBe('nosniff')
      continue
    }
    const target = path.replace(/:\w+/g, () => idOf(path))
    for (const address of [target, `${target}?${query}`]) {
      const page = await browser.open(address)
      expect(page.html, address).not.toMatch(/<x-markup|<\/textarea><\/script>/i)
      if (page.status >= 500) broken.push(`${address}: ${page.status}`)
      shown += page.html
    }
  }
  expect(broken).toEqual([])
  for (const path of formsWithValues) {
    const page = await browser.post(
      path,
      Object.fromEntries([...query].map(([name]) => [name, markup(`form-${name}`)])),
    )
    expect(page.html, path).not.toMatch(/<x-markup|<\/textarea><\/script>/i)
    shown += page.html
  }

  const escaped = [...shown.matchAll(/&lt;x-markup id=([\w-]+)/g)].map(([, name]) => name)
  // The texts that pages show, so that this test sees each of them.
  expect([...new Set(escaped)].toSorted()).toEqual(
    expect.arrayContaining([
      'action',
      'brand',
      'client',
      'email',
      'event-error',
      'event-type',
      'image',
      'instance-row',
      'job',
      'job-error',
      'form-connection_id',
      'form-email',
      'plugin',
      'reason',
      'receipt',
      'refund-error',
      'region',
      'session-region',
      'subscription',
    ]),
  )
})
