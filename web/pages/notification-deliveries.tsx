/** The last notifications of an account, and whether they arrived. */
import { DateTime, TimeAgo } from '../time-text.tsx'
import { channelTexts, hasText, kindTexts, type NotificationDelivery } from './notification-texts.ts'

export const Deliveries = ({ deliveries }: { readonly deliveries: readonly NotificationDelivery[] }) => (
  <section class="card" aria-labelledby="deliveries">
    <div class="row apart">
      <h2 id="deliveries">Last notifications</h2>
      <a class="link" href="/account/notifications">
        Refresh
      </a>
    </div>
    {deliveries.length === 0 ? <p class="muted">Nothing has been sent yet.</p> : null}
    <ol class="entries">
      {deliveries.filter(hasText).map((delivery) => (
        <li
          class="row apart"
          key={`${delivery.created_at} ${delivery.kind} ${delivery.channel}`}
          data-delivery={delivery.kind}
          data-channel={delivery.channel}
          data-state={delivery.state}
        >
          <div>
            <p>
              <strong>{delivery.kind === 'test' ? 'Test' : kindTexts[delivery.kind].name}</strong>
            </p>
            <p class="muted">
              {channelTexts[delivery.channel]} · <TimeAgo at={delivery.created_at} />
            </p>
            {delivery.error ? <p>{delivery.error}</p> : null}
            {delivery.attempts > 0 && delivery.next_attempt_at ? (
              <p class="muted">
                Next attempt: <DateTime at={delivery.next_attempt_at} />
              </p>
            ) : null}
          </div>
          <StateBadge state={delivery.state} />
        </li>
      ))}
    </ol>
  </section>
)

const states = {
  pending: { style: 'badge warn', text: 'Waiting' },
  sent: { style: 'badge good', text: 'Sent' },
  failed: { style: 'badge bad', text: 'Not sent' },
} as const

const StateBadge = ({ state }: Pick<NotificationDelivery, 'state'>) => (
  <span class={states[state].style}>{states[state].text}</span>
)
