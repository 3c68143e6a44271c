/** What an account is notified of, by email and at its webhook or Discord channel. */
import { type ApiResult, expectSuccess } from '../../client/api-error.ts'
import { readApiError, unchecked } from '../api-client.ts'
import type { PageHandler, PageResult, Visit } from '../page.ts'
import { DeletionBanner } from './account-deletion.tsx'
import { AccountTabs } from './account-tabs.tsx'
import { NoticeMessage, type Problem, ProblemMessage } from './messages.tsx'
import { readStreamDelay, StreamDelay } from './notification-delay.tsx'
import { Deliveries } from './notification-deliveries.tsx'
import { Endpoint, SigningSecret } from './notification-endpoint.tsx'
import {
  endpointTypeTexts,
  hasText,
  kindTexts,
  type NotificationKind,
  type NotificationOverview,
} from './notification-texts.ts'
import { problemOf } from './refusal-text.ts'

const path = '/account/notifications'

export const show: PageHandler = (visit) => notificationsPage(visit)

const channels = ['email', 'endpoint'] as const
const kinds = Object.keys(kindTexts) as NotificationKind[]

/**
 * The form names its kinds and channels, since boxes that are not ticked are not sent. It has none of a channel that is
 * not set up, nor of a kind that is newer than the page in the browser.
 */
export const save: PageHandler = async (visit) => {
  const { form } = visit
  const shown = channels.filter((channel) => form.getAll('channel').includes(channel))
  const shownKinds = kinds.filter((kind) => form.getAll('kind').includes(kind))
  const settings = shownKinds.flatMap((kind) =>
    shown.map((channel) => ({ kind, channel, enabled: form.has(`${kind}.${channel}`) })),
  )
  const seconds = readStreamDelay(form)
  if (settings.length === 0 && seconds === undefined) return { redirectTo: path }
  const delay = seconds === undefined ? {} : { stream_delay_seconds: seconds }
  const body = settings.length === 0 ? { stream_delay_seconds: seconds ?? 0 } : { settings, ...delay }
  return finish(visit, await visit.api.POST('/api/v1/notifications/settings', { body }), 'saved')
}

export const saveEndpoint: PageHandler = async (visit) => {
  const [type, url] = [visit.form.get('type') ?? '', (visit.form.get('url') ?? '').trim()]
  const body = { type: unchecked<'webhook' | 'discord'>(type), url }
  const result = await visit.api.POST('/api/v1/notifications/endpoint', { body })
  const { status } = result.response
  if (status !== 201) return notificationsPage(visit, { refused: { ...body, problem: urlProblemOf(result) }, status })
  const secret = result.data?.signing_secret
  return secret ? notificationsPage(visit, { signingSecret: secret }) : { redirectTo: `${path}?done=endpoint_saved` }
}

/** The API explains what is wrong with a URL in a sentence for the user. */
function urlProblemOf(result: ApiResult): Problem {
  const { code, message } = readApiError(result)
  const [, text] = /^body field url: (.+)$/s.exec(message) ?? []
  return code === 'invalid_request' && text ? { code, field: 'url', text } : problemOf(result)
}

export const rotateSecret: PageHandler = async (visit) => {
  const result = await visit.api.POST('/api/v1/notifications/endpoint/rotate')
  const secret = result.data?.signing_secret
  return result.response.status === 200 && secret
    ? notificationsPage(visit, { signingSecret: secret })
    : finish(visit, result, 'saved')
}

export const testEndpoint: PageHandler = async (visit) =>
  finish(visit, await visit.api.POST('/api/v1/notifications/endpoint/test'), 'test_requested')

export const removeEndpoint: PageHandler = async (visit) =>
  finish(visit, await visit.api.DELETE('/api/v1/notifications/endpoint'), 'endpoint_removed')

/** By the `done` parameter. It may be forged, so other values show nothing. */
const notices: ReadonlyMap<string, string> = new Map([
  ['saved', 'Notifications saved.'],
  ['endpoint_saved', 'Address saved. Send a test to see whether it works.'],
  ['endpoint_removed', 'Address removed.'],
  ['test_requested', 'A test is on its way. Its result appears under “Last notifications” within a few seconds.'],
])

const problems: Readonly<Record<string, string>> = {
  email_not_verified: 'Verify your email address first, on the page Security.',
  not_found: 'There is no address to send to. Save one first.',
}

/** Redirects to the page with a notice, or renders it with the refusal. */
const finish = (visit: Visit, result: ApiResult, notice: string): Promise<PageResult> | PageResult =>
  result.response.status < 300
    ? { redirectTo: `${path}?done=${notice}` }
    : notificationsPage(visit, { problem: problemOf(result, problems), status: result.response.status })

interface Outcome {
  readonly problem?: Problem
  readonly refused?: { readonly type: string; readonly url: string; readonly problem: Problem }
  readonly signingSecret?: string
  readonly status?: number
}

async function notificationsPage(visit: Visit, outcome: Outcome = {}): Promise<PageResult> {
  const action = 'A request of the notifications page'
  const [summary, notifications, sent] = await Promise.all([
    visit.api.GET('/api/v1/auth/session', { params: { query: { view: 'dock' } } }),
    visit.api.GET('/api/v1/notifications'),
    visit.api.GET('/api/v1/notifications/deliveries'),
  ])
  const { user } = expectSuccess(summary, action)
  const overview = expectSuccess(notifications, action)
  const { deliveries } = expectSuccess(sent, action)
  const done = visit.query.get('done') ?? ''
  const notice = notices.get(done)
  const problem = outcome.problem ?? outcome.refused?.problem
  return {
    name: 'account-notifications',
    title: 'Notifications',
    status: outcome.status ?? 200,
    section: 'account',
    styles: ['notifications.css'],
    scripts: ['connection-kit.js'],
    page: (
      <>
        <div class="page-head">
          <h1>Notifications</h1>
          <p class="lead">
            Choose what you are notified of, and where. Emails about payments and about a relay that may end during a
            stream are on until you turn them off; everything else is off until you turn it on. Emails about the
            security of your account, such as a changed password, are always sent.
          </p>
        </div>
        <AccountTabs current="notifications" />
        <DeletionBanner user={user} />
        <ProblemMessage problem={problem} />
        {notice && !problem ? <NoticeMessage notice={{ code: done, text: notice }} /> : null}
        {outcome.signingSecret === undefined ? null : <SigningSecret secret={outcome.signingSecret} />}
        <Kinds overview={overview} />
        <div class="grid-2">
          <Endpoint endpoint={overview.endpoint} refused={outcome.refused} />
          <Deliveries deliveries={deliveries} />
        </div>
      </>
    ),
  }
}

/** One form with one button, which works without a script. */
function Kinds({ overview }: { readonly overview: NotificationOverview }) {
  const { email, endpoint } = overview
  const kinds = overview.kinds.filter(hasText)
  const endpointName = endpoint ? endpointTypeTexts[endpoint.type] : 'Webhook or Discord'
  return (
    <section class="card" aria-labelledby="kinds">
      <h2 id="kinds">Notify me of</h2>
      {email.verified ? null : (
        <p class="warning" data-email="unverified">
          {email.address === null
            ? 'Your account has no email address, so notifications cannot be emailed.'
            : 'Emails are sent to a verified address only. '}
          {email.address === null ? null : <a href="/account/security">Verify your email address</a>}
        </p>
      )}
      <form class="fields" method="post" action={path}>
        {email.verified ? <input type="hidden" name="channel" value="email" /> : null}
        {endpoint ? <input type="hidden" name="channel" value="endpoint" /> : null}
        <ul class="entries">
          {kinds.map((setting) => (
            <li class="kind" key={setting.kind} id={setting.kind} data-kind={setting.kind}>
              <div>
                <input type="hidden" name="kind" value={setting.kind} />
                <p>
                  <strong>{kindTexts[setting.kind].name}</strong>
                </p>
                <p class="muted">{kindTexts[setting.kind].description}</p>
              </div>
              <div class="channels">
                <Switch {...setting} channel="email" text="Email" isAvailable={email.verified} />
                <Switch {...setting} channel="endpoint" text={endpointName} isAvailable={endpoint !== null} />
              </div>
            </li>
          ))}
        </ul>
        {email.verified || endpoint ? <StreamDelay seconds={overview.stream_delay_seconds} /> : null}
        {email.verified || endpoint ? (
          <div>
            <button type="submit">Save</button>
          </div>
        ) : (
          <p>Verify your email address or save an address below first. Then choose here.</p>
        )}
      </form>
    </section>
  )
}

type Setting = NotificationOverview['kinds'][number]

interface SwitchProps extends Setting {
  readonly channel: 'email' | 'endpoint'
  readonly text: string
  readonly isAvailable: boolean
}

const Switch = ({ kind, channel, text, isAvailable, ...enabled }: SwitchProps) => (
  <label class="check">
    <input type="checkbox" value="on" name={`${kind}.${channel}`} checked={enabled[channel]} disabled={!isAvailable} />
    {text}
    <span class="unseen">: {kindTexts[kind].name}</span>
  </label>
)
