/** Points in time as entries of a list of facts; those that are not known are left out. */
import { Fragment } from 'preact'
import { Instant } from '../time-text.tsx'

interface TimeFactsProps {
  readonly times: Readonly<Record<string, string | null | undefined>>
}

export const TimeFacts = ({ times }: TimeFactsProps) => (
  <>
    {Object.entries(times).map(([label, at]) =>
      at ? (
        <Fragment key={label}>
          <dt>{label}</dt>
          <dd>
            <Instant at={at} />
          </dd>
        </Fragment>
      ) : null,
    )}
  </>
)
