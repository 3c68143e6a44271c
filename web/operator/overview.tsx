/** The first page of the console: the health of the service and the last hour. */
import { expectSuccess } from '../../client/api-error.ts'
import { MinuteBars } from '../charts/minute-bars.tsx'
import type { PageHandler } from '../page.ts'
import { DateTime } from '../time-text.tsx'
import { type Overview, OverviewTiles } from './overview-tiles.tsx'

export const show: PageHandler = async ({ operatorApi }) => {
  const overview = expectSuccess(await operatorApi.GET('/api/v1/admin/overview'))
  return {
    name: 'operator-overview',
    title: 'Overview',
    console: 'overview',
    page: <OverviewPage overview={overview} />,
  }
}

const OverviewPage = ({ overview }: { readonly overview: Overview }) => (
  <>
    <div class="page-head">
      <h1>Overview</h1>
    </div>
    <div class="stack" data-refreshes="overview">
      <p class="muted">
        As of <DateTime at={overview.as_of} />.
      </p>
      <OverviewTiles overview={overview} />
      <LastHour minutes={overview.minutes} />
      <Capacity regions={overview.regions} />
    </div>
  </>
)

type Minutes = Overview['minutes']

const figures = [
  ['started', 'Relays started', 1],
  ['stopped', 'Relays ended', 2],
  ['provisioning_failed', 'Relays that failed to start', 3],
  ['sign_ins_failed', 'Failed sign-ins', 4],
] as const

const LastHour = ({ minutes }: { readonly minutes: Minutes }) => (
  <section class="card">
    <h2>The last hour</h2>
    <div class="grid-2">
      {figures.map(([figure, label, colour]) => (
        <MinuteBars
          key={figure}
          label={label}
          colour={colour}
          minutes={minutes.map((minute) => ({ at: minute.at, count: minute[figure] }))}
        />
      ))}
    </div>
    <MinuteTable minutes={minutes} />
  </section>
)

/** Newest first, without minutes in which nothing happened. */
function MinuteTable({ minutes }: { readonly minutes: Minutes }) {
  const rows = minutes.filter((minute) => figures.some(([figure]) => minute[figure] > 0)).toReversed()
  return (
    <details>
      <summary>The last hour as a table</summary>
      {rows.length === 0 ? (
        <p>Nothing happened in the last hour.</p>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a keyboard can then scroll it
        <section class="table-scroll" tabIndex={0} aria-label="The last hour by minute">
          <table class="table">
            <thead>
              <tr>
                <th scope="col">Minute</th>
                {figures.map(([figure, label]) => (
                  <th key={figure} scope="col" class="number">
                    {label}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((minute) => (
                <tr key={minute.at}>
                  <th scope="row">
                    <DateTime at={minute.at} />
                  </th>
                  {figures.map(([figure]) => (
                    <td key={figure} class="number">
                      {minute[figure]}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </details>
  )
}

const capacityHealth = { available: 'good', limited: 'warn', full: 'bad' } as const

const Capacity = ({ regions }: { readonly regions: Overview['regions'] }) => (
  <section class="card">
    <h2>
      <a href="/operator/regions">Regions</a>
    </h2>
    <ul class="entries">
      {regions.map((region) => (
        <li key={region.region} class="row apart" data-region={region.region} data-capacity={region.status}>
          <span>{region.display_name}</span>
          <span class="row">
            {`${region.sessions} of ${region.capacity} relays`}
            <span class={`badge ${capacityHealth[region.status]}`}>
              {region.drained_at === null ? region.status : 'drained'}
            </span>
          </span>
        </li>
      ))}
    </ul>
  </section>
)
