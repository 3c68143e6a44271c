/** A running worker: mails about a stream arrive within seconds, and the session page offers and explains them. */
import { expect, test } from 'vitest'
import { startFakeRelayService } from '../../support/fake-relays.ts'
import { eventually } from '../../support/relays.ts'
import { freeSiteUrl, startSite } from '../../support/site.ts'
import { startSmtpServer } from '../../support/smtp-server.ts'
import { longRelayTimeouts } from '../../support/subscribers.ts'

const smtp = await startSmtpServer()
const siteUrl = await freeSiteUrl()
const service = await startFakeRelayService({
  variables: { ...longRelayTimeouts, SVC_SMTP_URL: smtp.url, SVC_SITE_URL: siteUrl },
})
const { api } = service
const site = await startSite(api, { SVC_SITE_URL: siteUrl })

const secondsMax = 10

test('a loss without a delay and its return are mailed within seconds, and the mail leads to the page of the session', async () => {
  const user = await service.user()
  await api.sql`update users set email_verified_at = now() where id = ${user.userId}`
  const browser = site.browser()
  await browser.post('/login', { email: user.email, password: user.password })
  const { session_id: id } = await service.startActiveRelay(user)
  expect((await browser.open(`/history/${id}`)).data('offer')).toEqual(['stream_lost'])
  const form = {
    channel: 'email',
    'stream_lost.email': 'on',
    'stream_recovered.email': 'on',
    stream_delay_seconds: '0',
  }
  for (const kind of ['stream_lost', 'stream_recovered'])
    await browser.post('/account/notifications', { ...form, kind })
  expect((await browser.open(`/history/${id}`)).data('offer')).toEqual([])

  const mailAbout = (subject: string) =>
    smtp.received.find(({ text, recipients }) => text.includes(subject) && recipients.includes(user.email))
  const report = (...kinds: readonly string[]) =>
    service.sendReport(id, {
      events: kinds.map((kind, index) => ({ seq: index + 1, kind, age_ms: 0, bitrate_kbps: 4_000 })),
      stats: { bitrate_kbps: 4_000, started_at_ms: 1 },
    })
  const secondsUntilMailed = async (subject: string) => {
    const from = performance.now()
    await eventually(
      async () => mailAbout(subject),
      (mail) => mail !== undefined,
    )
    return (performance.now() - from) / 1000
  }
  await report('stream_started', 'stream_lost')
  expect(await secondsUntilMailed('No video has come in since')).toBeLessThan(secondsMax)
  const [link = ''] = /\/history\/\S+\?at=\S+Z/.exec(mailAbout('No video has come in since')?.text ?? '') ?? []
  expect((await browser.open(link)).name).toBe('history-session')
  await report('stream_started', 'stream_lost', 'stream_recovered')
  expect(await secondsUntilMailed('Video comes in again since')).toBeLessThan(secondsMax)
})
