/** Used relay time against what is included, with marks where the account's owner is notified. */
import { usageNoticePercents } from '../../domain/billing/usage-cycle.ts'
import { formatHours } from '../time-text.tsx'

interface UsageMeterProps {
  readonly includedSeconds: number
  readonly consumedSeconds: number
  /** At the end of the cycle; null when it is not known. */
  readonly forecastSeconds: number | null
}

const width = 1000

export function UsageMeter({ includedSeconds, consumedSeconds, forecastSeconds }: UsageMeterProps) {
  const scale = Math.max(includedSeconds, consumedSeconds)
  const x = (seconds: number) => Math.round((Math.min(seconds, scale) / scale) * width)
  const isOver = consumedSeconds >= includedSeconds
  const isHigh = consumedSeconds >= includedSeconds * 0.8
  return (
    <svg
      class="meter"
      viewBox={`0 0 ${width} 20`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`${formatHours(consumedSeconds)} of ${formatHours(includedSeconds)} used`}
    >
      <rect class="meter-track" width={width} height="20" />
      {forecastSeconds === null ? null : <rect class="meter-forecast" width={x(forecastSeconds)} height="20" />}
      <rect
        class={isOver ? 'meter-used over' : isHigh ? 'meter-used high' : 'meter-used'}
        width={x(consumedSeconds)}
        height="20"
      />
      {usageNoticePercents.map((percent) => {
        const at = x((includedSeconds * percent) / 100)
        return <line key={percent} class="meter-mark" data-percent={percent} x1={at} x2={at} y1="0" y2="20" />
      })}
    </svg>
  )
}
