/** The relay time of the cycle in a few numbers, and what it will be at its end. */
import { usageNoticePercents } from '../../domain/billing/usage-cycle.ts'
import type { UsageByDay } from '../api-replies.ts'
import { UsageMeter } from '../charts/usage-meter.tsx'
import { formatHours, UtcDay } from '../time-text.tsx'

interface UsageProps {
  readonly usage: UsageByDay
}

export function UsageTiles({ usage }: UsageProps) {
  const { included_seconds: included, consumed_seconds: consumed, forecast_seconds: forecast } = usage
  const daysLeft = Math.max(0, Math.ceil((Date.parse(usage.cycle_end) - Date.parse(usage.as_of)) / 86_400_000))
  const isOver = usage.overage_seconds > 0
  return (
    <div
      class="tiles"
      data-consumed-seconds={consumed}
      data-included-seconds={included}
      data-forecast-seconds={forecast ?? 'unknown'}
    >
      <Tile label="Used" value={formatHours(consumed)} note={included > 0 ? percentText(consumed, included) : null} />
      <Tile
        label={isOver ? 'Over' : 'Left'}
        value={formatHours(isOver ? usage.overage_seconds : usage.remaining_seconds)}
        note={`of ${formatHours(included)}`}
      />
      <Tile
        label="Forecast"
        value={forecast === null ? '–' : formatHours(forecast)}
        note={forecast === null ? 'after the first day' : 'at the end of the cycle'}
      />
      <Tile label="Days left" value={String(daysLeft)} note={relaysText(usage.active_sessions)} />
    </div>
  )
}

interface TileProps {
  readonly label: string
  readonly value: string
  readonly note: string | null
}

const Tile = ({ label, value, note }: TileProps) => (
  <div class="tile">
    <span class="tile-label">{label}</span>
    <span class="tile-value">{value}</span>
    <span class="tile-note">{note}</span>
  </div>
)

const percentText = (consumed: number, included: number): string => `${Math.floor((consumed * 100) / included)} %`

const relaysText = (count: number): string =>
  count === 0 ? 'no relay running' : `${count} ${count === 1 ? 'relay' : 'relays'} running`

export const Forecast = ({ usage }: UsageProps) => (
  <section class="card" aria-labelledby="forecast">
    <h2 id="forecast">Relay time</h2>
    <UsageMeter
      includedSeconds={usage.included_seconds}
      consumedSeconds={usage.consumed_seconds}
      forecastSeconds={usage.forecast_seconds}
    />
    <p>
      <ForecastText usage={usage} />
    </p>
    <p class="muted">
      The marks are at {noticeTexts(usage.included_seconds)}. You can be <a href="/account/notifications">notified</a>{' '}
      when you reach one.
    </p>
  </section>
)

const noticeTexts = (included: number): string => {
  const texts = usageNoticePercents.map((percent) => `${percent} % (${formatHours((included * percent) / 100)})`)
  return `${texts.slice(0, -1).join(', ')} and ${texts.at(-1)}`
}

function ForecastText({ usage }: UsageProps) {
  const { included_seconds: included, forecast_seconds: forecast, exhausted_at: exhaustedAt } = usage
  const isEnforced = usage.enforcement === 'enforce'
  if (usage.remaining_seconds === 0)
    return (
      <span data-forecast="exhausted">
        All relay time of this cycle is used. {isEnforced ? 'You can start new relays' : 'Relay time resets'} on{' '}
        <UtcDay at={usage.cycle_end} />.
      </span>
    )
  if (forecast === null)
    return <span data-forecast="unknown">There is a forecast after the first day of the cycle.</span>
  if (exhaustedAt === null)
    return (
      <span data-forecast="enough">
        At this pace you will use {formatHours(forecast)} of {formatHours(included)} by <UtcDay at={usage.cycle_end} />.
      </span>
    )
  return (
    <span data-forecast="short">
      At this pace your {formatHours(included)} are used up on <UtcDay at={exhaustedAt} />.{' '}
      {isEnforced
        ? 'From then on you can’t start new relays until the next cycle. An add-on adds relay time.'
        : 'Your relays keep working after that.'}
    </span>
  )
}
