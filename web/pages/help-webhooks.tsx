/** How to receive the notifications of an account as webhooks: the format, and verifying the signature. */
import type { PageHandler } from '../page.ts'

export const show: PageHandler = ({ origin }) => ({
  name: 'help-webhooks',
  title: 'Receive webhooks',
  styles: ['notifications.css'],
  page: <HelpWebhooks origin={origin} />,
})

/** As in docs/notifications.md. */
const receiver = `import express from 'express'
import { Webhook } from 'standardwebhooks'

const webhook = new Webhook(process.env.WEBHOOK_SECRET) // whsec_…
express()
  .post('/hook', express.raw({ type: 'application/json' }), (request, response) => {
    // Throws unless the signature is right.
    const { type, data } = webhook.verify(request.body.toString(), request.headers)
    console.log(type, data)
    response.sendStatus(204)
  })
  .listen(3000)`

const example = (origin: string): string =>
  JSON.stringify(
    {
      type: 'relay_ended',
      timestamp: '2026-11-22T14:05:33.120Z',
      data: {
        session_id: '7a4d1a39-6b34-4c4f-8f5e-0d7c2f0b1c11',
        connection_id: 'main',
        region: 'eu-central',
        reason: 'grace_elapsed',
        initiator: 'timer',
        cause: { reason: 'health_lost', initiator: 'system' },
        detail: null,
        created_at: '2026-11-22T12:00:00.000Z',
      },
      title: 'Relay “main” ended',
      text: 'We lost contact with it, and it did not come back. …',
      url: `${origin}/history/7a4d1a39-6b34-4c4f-8f5e-0d7c2f0b1c11`,
      unsubscribe_url: `${origin}/notifications/off?token=…`,
    },
    null,
    2,
  )

/** The fields of `data`, by kind. */
const kinds: readonly (readonly [kind: string, fields: string])[] = [
  ['relay_contact_lost', 'session_id, connection_id, region, grace_ends_at'],
  ['relay_replaced', 'session_id, connection_id, region, failed_at, away_seconds, cause'],
  ['relay_ending_soon', 'session_id, connection_id, region, idle_ends_at, ends_at'],
  ['relay_ended', 'session_id, connection_id, region, reason, initiator, cause, detail, created_at'],
  ['stream_lost', 'session_id, connection_id, region, at'],
  ['stream_recovered', 'session_id, connection_id, region, at, bitrate_kbps, lost_at, away_seconds'],
  ['stream_weak', 'session_id, connection_id, region, at, bitrate_kbps'],
  ['payment_failed', 'subscriptions, ends_at'],
  ['plan_ending', 'ends_at'],
  ['relays_surplus', 'connection_ids, ends_at'],
  ['usage_80, usage_95, usage_100', 'percent, consumed_seconds, included_seconds, cycle_start, cycle_end'],
  ['test', 'none'],
]

const HelpWebhooks = ({ origin }: { readonly origin: string }) => (
  <>
    <div class="page-head">
      <h1>Receive webhooks</h1>
      <p class="lead">
        Your server gets a POST request for each <a href="/account/notifications">notification</a> that you turn on.
      </p>
    </div>
    <section class="card" aria-labelledby="format">
      <h2 id="format">Format</h2>
      <p>The body is JSON. Fields may be added later. Times are in UTC.</p>
      <pre class="code sample">{example(origin)}</pre>
      <h3>Fields of data</h3>
      <dl class="facts">
        {kinds.flatMap(([kind, fields]) => [
          <dt class="code" key={kind}>
            {kind}
          </dt>,
          <dd class="code" key={`${kind} fields`}>
            {fields}
          </dd>,
        ])}
      </dl>
    </section>
    <section class="card" aria-labelledby="signature">
      <h2 id="signature">Signature</h2>
      <p>
        Requests are signed as <a href="https://www.standardwebhooks.com">Standard Webhooks</a>. Verify them with one of
        its libraries and the signing secret that you got when you saved the address:
      </p>
      <pre class="code sample">{receiver}</pre>
    </section>
    <section class="card" aria-labelledby="delivery">
      <h2 id="delivery">Delivery</h2>
      <ul>
        <li>Reply with a status from 200 to 299 within 10 seconds. Redirects are not followed.</li>
        <li>Otherwise the request is repeated with growing pauses for 24 hours, or after the time in Retry-After.</li>
        <li>The header webhook-id is the same each time. Ignore a request that you have already handled.</li>
        <li>Reply with 410 to get no more requests. After three days of failures they also end.</li>
        <li>The address must begin with https://, be reachable from the internet, and use port 443 or 8443.</li>
        <li>An account gets at most 60 notifications an hour, besides those about payments.</li>
      </ul>
    </section>
  </>
)
