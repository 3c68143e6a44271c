/**
 * The link in each notification that turns it off, without a sign-in. Opening it changes nothing, since mail programs
 * and scanners open links by themselves. Mail programs with an unsubscribe button send the POST request (RFC 8058).
 */
import type { ApiResult } from '../../client/api-error.ts'
import { readApiError } from '../api-client.ts'
import type { PageHandler, PageResult } from '../page.ts'
import { type Problem, ProblemMessage } from './messages.tsx'
import { kindTexts, type NotificationKind } from './notification-texts.ts'
import { problemOf } from './refusal-text.ts'

const path = '/notifications/off'

interface NotificationSetting {
  readonly kind: NotificationKind
  readonly channel: 'email' | 'endpoint'
}

export const show: PageHandler = async (visit) => {
  const token = visit.query.get('token') ?? ''
  const result = await visit.anonymousApi.POST('/api/v1/notifications/unsubscribe/preview', { body: { token } })
  return result.data ? questionPage(token, result.data) : refusedPage(result)
}

export const submit: PageHandler = async (visit) => {
  // A mail program posts to the link, which has the token; the page's form contains it.
  const token = visit.form.get('token') ?? visit.query.get('token') ?? ''
  const result = await visit.anonymousApi.POST('/api/v1/notifications/unsubscribe', { body: { token } })
  return result.data ? donePage(result.data) : refusedPage(result)
}

const refusedPage = (result: ApiResult): PageResult =>
  ['token_invalid', 'invalid_request'].includes(readApiError(result).code)
    ? failurePage({ code: 'token_invalid', text: 'This link is incomplete, or too old to work.' }, 400)
    : failurePage(problemOf(result), result.response.status)

const describe = ({ kind, channel }: NotificationSetting): string =>
  `“${kindTexts[kind].name}” ${channel === 'email' ? 'by email' : 'at your webhook or Discord channel'}`

const questionPage = (token: string, setting: NotificationSetting): PageResult => ({
  name: 'notifications-off',
  title: 'Turn off notification',
  layout: 'narrow',
  page: (
    <section class="card" data-kind={setting.kind} data-channel={setting.channel}>
      <h1>Turn off this notification?</h1>
      <p>You will no longer get {describe(setting)}.</p>
      <form class="fields" method="post" action={path}>
        <input type="hidden" name="token" value={token} />
        <button class="wide" type="submit">
          Turn off
        </button>
      </form>
      <SettingsLink />
    </section>
  ),
})

const donePage = (setting: NotificationSetting): PageResult => ({
  name: 'notifications-off-done',
  title: 'Notification turned off',
  layout: 'narrow',
  page: (
    <section class="card" data-kind={setting.kind} data-channel={setting.channel}>
      <h1>Notification turned off</h1>
      <p role="status" data-notice="turned_off">
        You no longer get {describe(setting)}. What is on its way already may still arrive.
      </p>
      <SettingsLink />
    </section>
  ),
})

const failurePage = (problem: Problem, status: number): PageResult => ({
  name: 'notifications-off-failed',
  title: 'Notification not turned off',
  layout: 'narrow',
  status,
  page: (
    <section class="card">
      <h1>Nothing was turned off</h1>
      <ProblemMessage problem={problem} />
      <p>You can turn off notifications in your account.</p>
      <SettingsLink />
    </section>
  ),
})

const SettingsLink = () => (
  <p>
    <a class="link" href="/account/notifications">
      All notification settings
    </a>
  </p>
)
