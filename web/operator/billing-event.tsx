/** One billing event with its normalised form, and the acts of operators on it. */
import type { ComponentChildren } from 'preact'
import type { PageResult, Visit } from '../page.ts'
import { ActForm } from './act-form.tsx'
import { createActs, type Outcome, OutcomeMessages } from './acts.tsx'
import { Facts, None } from './facts.tsx'
import { Identifier, UserLink } from './identifier.tsx'
import type { BillingEventDetail } from './operator-replies.ts'
import { refusedPage } from './refused-page.tsx'
import { EventStatus } from './state-badges.tsx'

const { show, act } = createActs({
  pathOf: ({ params }) => `/operator/billing/events/${params.id}`,
  notices: {
    replay: 'The event was parsed again. Its account’s workflow applies the result within seconds.',
    dismiss: 'The event is dismissed. It needs no attention any more.',
  },
  page: eventPage,
})

export { show }

const sendAs =
  (name: 'replay' | 'dismiss') =>
  ({ operatorApi }: Visit, path: { readonly id: string }, reason: string) =>
    operatorApi.POST(`/api/v1/admin/billing/events/{id}/${name}`, { params: { path }, body: { reason } })

export const replay = act('replay', sendAs('replay'))
export const dismiss = act('dismiss', sendAs('dismiss'))

async function eventPage(visit: Visit, outcome: Outcome): Promise<PageResult> {
  const path = { id: visit.params.id ?? '' }
  const result = await visit.operatorApi.GET('/api/v1/admin/billing/events/{id}', { params: { path } })
  if (!result.data) return refusedPage('billing', 'Billing event', result)
  return {
    name: 'operator-billing-event',
    title: 'Billing event',
    console: 'billing',
    status: outcome.status ?? 200,
    page: (
      <EventPage event={result.data.event}>
        <OutcomeMessages outcome={outcome} />
      </EventPage>
    ),
  }
}

interface EventPageProps {
  readonly event: BillingEventDetail
  readonly children: ComponentChildren
}

const EventPage = ({ event, children }: EventPageProps) => (
  <>
    <div class="page-head">
      <h1>{event.type}</h1>
      <p class="row">
        <EventStatus status={event.status} />
      </p>
    </div>
    {children}
    {event.error === null ? null : (
      <p class="warning" data-event-error>
        {event.error}
      </p>
    )}
    <div class="grid-2" data-event={event.id} data-status={event.status}>
      <section class="card" aria-labelledby="event">
        <h2 id="event">Event</h2>
        <EventFacts event={event} />
      </section>
      <section class="card" aria-labelledby="normalised">
        <h2 id="normalised">Normalised form</h2>
        {event.normalised === null ? (
          <p class="muted">None: the event could not be read, or it does not concern this service.</p>
        ) : (
          <pre class="json" data-normalised>
            {JSON.stringify(event.normalised, undefined, 2)}
          </pre>
        )}
      </section>
    </div>
    <EventActs event={event} />
  </>
)

const EventFacts = ({ event }: { readonly event: BillingEventDetail }) => (
  <Facts
    values={{
      Id: <Identifier value={event.id} />,
      Provider: event.provider,
      Key: <Identifier value={event.event_key} />,
      Action: event.action ?? <None />,
      Account: <UserLink of={event} />,
      'Account named in it': event.user_ref === null ? <None /> : <Identifier value={event.user_ref} />,
      Subscription: event.subscription_id === null ? <None /> : <Identifier value={event.subscription_id} />,
      Attempts: event.attempts,
    }}
    times={{
      Occurred: event.occurred_at,
      Received: event.received_at,
      Applied: event.applied_at,
      'Next attempt': event.next_attempt_at,
    }}
  />
)

const EventActs = ({ event: { id, status } }: { readonly event: BillingEventDetail }) => (
  <section class="card" aria-labelledby="acts">
    <h2 id="acts">Act on this event</h2>
    <div class="acts">
      <ActForm
        id="replay"
        action={`/operator/billing/events/${id}/replay`}
        label="Replay"
        explanation="Parses the stored bytes again and applies the result. An event that was applied has no second effect."
      />
      {status === 'parked' || status === 'dead' ? (
        <ActForm
          id="dismiss"
          action={`/operator/billing/events/${id}/dismiss`}
          label="Dismiss"
          explanation="The event has no effect and needs no attention any more. It can still be replayed."
          isDangerous
        />
      ) : null}
    </div>
  </section>
)
