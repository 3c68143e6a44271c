/** What the stream of a relay session did, on a time line. */
import { describeStreamEvent, toneOfStreamEvent } from '../stream-event-texts.ts'
import { Instant } from '../time-text.tsx'
import type { OperatorSessionDetail } from './operator-replies.ts'

export const SessionStreamEvents = ({ events }: { readonly events: OperatorSessionDetail['stream_events'] }) => (
  <section class="card" aria-labelledby="stream-events">
    <h2 id="stream-events">Stream</h2>
    {events.length === 0 ? (
      <p class="muted">No stream has started.</p>
    ) : (
      <ol class="timeline">
        {events.map((event) => (
          <li key={`${event.at} ${event.kind}`} class={toneOfStreamEvent(event)} data-stream-event={event.kind}>
            <p>{describeStreamEvent(event)}</p>
            <p class="muted">
              <Instant at={event.at} />
            </p>
          </li>
        ))}
      </ol>
    )}
  </section>
)
