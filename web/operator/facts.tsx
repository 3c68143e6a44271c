/** Facts about a thing, by their labels. Those that are not known are left out. */
import { type ComponentChildren, Fragment } from 'preact'
import { Instant } from '../time-text.tsx'

interface FactsProps {
  /** Null for one that is left out. */
  readonly values: Readonly<Record<string, ComponentChildren>>
  /** Points in time, after the values. */
  readonly times?: Readonly<Record<string, string | null | undefined>>
}

export const Facts = ({ values, times = {} }: FactsProps) => {
  const instants = Object.entries(times).map(([label, at]) => [label, at ? <Instant at={at} /> : null] as const)
  return (
    <dl class="facts">
      {[...Object.entries(values), ...instants].map(([label, value]) =>
        value === null ? null : (
          <Fragment key={label}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </Fragment>
        ),
      )}
    </dl>
  )
}

export const None = () => <span class="muted">none</span>
