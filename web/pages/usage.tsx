/** The usage page: relay time of the current cycle by day and by relay, with a forecast, and the same as CSV. */
import { expectSuccess } from '../../client/api-error.ts'
import type { UsageByDay } from '../api-replies.ts'
import { formatCsv } from '../csv.ts'
import { Icon } from '../icons.tsx'
import type { PageHandler, Visit } from '../page.ts'
import { UtcDay } from '../time-text.tsx'
import { TrialTime } from './trial.tsx'
import { DaysChart, DaysTable, nameOf, RelaysTable } from './usage-days.tsx'
import { Forecast, UsageTiles } from './usage-summary.tsx'

export const show: PageHandler = async (visit) => ({
  name: 'usage',
  title: 'Usage',
  section: 'usage',
  styles: ['usage.css'],
  page: <Usage usage={await findUsage(visit)} />,
})

export const csv: PageHandler = async (visit) => {
  const { cycle_start: start, days } = await findUsage(visit)
  const rows = days.flatMap(({ day, connections }) =>
    connections.map((connection) => [day, nameOf(connection.connection_id), connection.seconds] as const),
  )
  return {
    download: {
      fileName: `relay-time-${start.slice(0, 10)}.csv`,
      contentType: 'text/csv; charset=utf-8',
      content: formatCsv([['day_utc', 'relay', 'seconds'], ...rows]),
    },
  }
}

const findUsage = async (visit: Visit): Promise<UsageByDay> =>
  expectSuccess(await visit.api.GET('/api/v1/usage/days'), 'The request of the usage page')

interface UsageProps {
  readonly usage: UsageByDay
}

const Usage = ({ usage }: UsageProps) => (
  <>
    <div class="page-head">
      <h1>Usage</h1>
      {usage.days.length > 0 ? (
        <a class="button second" href="/usage.csv" download>
          <Icon name="download" />
          Download CSV
        </a>
      ) : null}
      <p class="lead">
        Relay time from <UtcDay at={usage.cycle_start} /> to <UtcDay at={usage.cycle_end} />. Relays that run at the
        same time add up.
      </p>
    </div>
    {usage.included_seconds === 0 && usage.days.length === 0 ? <NoUsage /> : <UsageOfCycle usage={usage} />}
  </>
)

const UsageOfCycle = ({ usage }: UsageProps) => (
  <>
    {usage.trial ? <TrialTime trial={usage.trial} /> : <UsageTiles usage={usage} />}
    {usage.included_seconds > 0 && !usage.trial ? <Forecast usage={usage} /> : null}
    <section class="card" aria-labelledby="days">
      <h2 id="days">By day</h2>
      {usage.days.length === 0 ? (
        <p data-days="none">No relay has run in this cycle yet.</p>
      ) : (
        <>
          <DaysChart usage={usage} />
          <p class="muted">Days begin at midnight UTC.</p>
          <DaysTable usage={usage} />
        </>
      )}
    </section>
    {usage.connections.length > 0 ? <RelaysTable usage={usage} /> : null}
  </>
)

const NoUsage = () => (
  <section class="card empty" data-usage="none">
    <Icon name="chart-column" />
    <h2>No relay time yet</h2>
    <p>The paid plan includes a managed relay with relay time for each cycle. What you use of it is shown here.</p>
    <a class="button" href="/account#plan">
      View the paid plan
    </a>
  </section>
)
