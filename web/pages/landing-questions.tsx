/** Questions and answers on the landing page. */
import type { VNode } from 'preact'
import { addonsMax } from '../../domain/billing/plans.ts'
import type { Prices, RelayTimeTerms } from '../../platform/config/site.ts'
import { describeLimit, formatRelayTime, planRelays } from '../plan-terms.ts'
import { formatPrice } from '../prices.ts'

type Question = readonly [question: string, answer: VNode]

interface QuestionsProps {
  readonly prices: Prices
  readonly relayTime: RelayTimeTerms
}

const questionsOf = ({ prices: { addon, currency }, relayTime }: QuestionsProps): readonly Question[] => [
  [
    'What is a relay?',
    <>
      A server between your encoder and OBS. Your encoder sends to it over several networks at once. The relay joins
      them and gives OBS one steady stream, so OBS doesn’t notice when one of them is gone.
    </>,
  ],
  [
    'What is the difference between SRT and SRTLA?',
    <>
      SRT repeats packets that get lost on the way, over one network. SRTLA sends SRT over several networks at once.
      Every relay takes both.
    </>,
  ],
  [
    'Do I need a managed relay?',
    <>
      No. The <a href="/help#plugin">plugin for OBS</a> works with a relay of your own, on the free plan too. A managed
      relay saves you from running a server.
    </>,
  ],
  [
    'Can I run several relays?',
    <>
      Yes. The paid plan includes one, and up to {addonsMax} add-ons add one each for {formatPrice(addon, currency)} a
      month: for a second camera, or for a friend who streams with you.
    </>,
  ],
  [
    'How long may I stream?',
    <>
      Each relay of the paid plan brings {formatRelayTime(planRelays, relayTime)}, which all your relays share.{' '}
      {describeLimit(relayTime)}
    </>,
  ],
  [
    'Can I cancel?',
    <>
      At any time. A cancelled plan works until the end of the period that you paid for. Then it becomes the free plan.
    </>,
  ],
  [
    'What happens when a payment fails?',
    <>
      Your plan and your relays keep working for a while, and you see the deadline. Pay within that time and nothing
      changes.
    </>,
  ],
]

export const Questions = (props: QuestionsProps) => (
  <section class="section" aria-labelledby="questions">
    <div class="section-head">
      <h2 id="questions">Questions</h2>
      <p>
        More on the <a href="/help">help page</a>.
      </p>
    </div>
    <div class="questions">
      {questionsOf(props).map(([question, answer]) => (
        <details key={question} class="question">
          <summary>{question}</summary>
          <p>{answer}</p>
        </details>
      ))}
    </div>
  </section>
)
