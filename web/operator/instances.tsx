/** Instances at the providers, among them orphans: those without an owner. */
import type { PageHandler } from '../page.ts'
import { type Problem, ProblemMessage } from '../pages/messages.tsx'
import { formatAge, formatDuration, TimeAgo } from '../time-text.tsx'
import { Choice, type Filter, FilterForm, Pager, readFilter, TextFilter } from './filter-form.tsx'
import { Identifier, SessionLink, UserLink } from './identifier.tsx'
import type { Instance, InstancePage, Region } from './operator-replies.ts'
import { listProblem } from './refused-page.tsx'
import { type Column, ScrollingTable } from './scrolling-table.tsx'
import { regionOptions } from './sessions.tsx'
import { InstanceUse, instanceUse } from './state-badges.tsx'

const path = '/operator/instances'

/** Which instances are shown, by the parameters of the API. */
const shown: Readonly<Record<string, { gone?: 'true' | 'false'; orphans?: 'true' }>> = {
  existing: { gone: 'false' },
  orphans: { orphans: 'true' },
  gone: { gone: 'true' },
  all: {},
}

export const list: PageHandler = async ({ query, operatorApi }) => {
  const { show, ...filter } = readFilter(query, ['show', 'region', 'instance_id'])
  // The overview links to `orphans=true`.
  const asked = query.get('orphans') === 'true' ? 'orphans' : show
  const chosen = Object.hasOwn(shown, asked) ? asked : 'existing'
  const [found, regions] = await Promise.all([
    operatorApi.GET('/api/v1/admin/instances', { params: { query: { ...filter, ...shown[chosen] } } }),
    operatorApi.GET('/api/v1/admin/regions'),
  ])
  const props = { filter: { ...filter, show: chosen }, found: found.data ?? {}, regions: regions.data?.regions ?? [] }
  return {
    name: 'operator-instances',
    title: 'Instances',
    console: 'instances',
    status: found.response.status,
    page: <InstancesPage {...props} problem={listProblem(found)} />,
  }
}

interface InstancesPageProps {
  readonly filter: Filter
  readonly found: Partial<InstancePage>
  readonly regions: readonly Region[]
  readonly problem: Problem | undefined
}

const shownTexts = { existing: 'existing', orphans: 'orphans: without an owner', gone: 'gone', all: 'all' }

const InstancesPage = ({ filter, found, regions, problem }: InstancesPageProps) => (
  <>
    <div class="page-head">
      <h1>Instances</h1>
      <p class="lead">Machines that run relays. The newest first.</p>
    </div>
    <ul class="tiles">
      {regions.map((region) => (
        <RegionTile key={region.region} region={region} />
      ))}
    </ul>
    <ProblemMessage problem={problem} />
    <FilterForm action={path}>
      <Choice name="show" label="Show" value={filter.show ?? ''} options={shownTexts} />
      <Choice
        name="region"
        label="Region"
        value={filter.region ?? ''}
        options={regionOptions(regions, filter.region)}
      />
      <TextFilter name="instance_id" label="Instance id" value={filter.instance_id ?? ''} />
    </FilterForm>
    <div class="stack" data-refreshes="instances">
      {problem ? null : (
        <ScrollingTable
          label="Instances"
          columns={columns}
          empty="No instance matches this filter."
          rows={found.instances ?? []}
          keyOf={(instance) => instance.instance_id}
          dataOf={(instance) => ({ 'data-instance': instance.instance_id, 'data-use': instanceUse(instance) })}
        />
      )}
      <Pager path={path} filter={filter} nextCursor={found.next_cursor} />
    </div>
  </>
)

const RegionTile = ({ region }: { readonly region: Region }) => (
  <li class="tile" data-region={region.region}>
    <span class="tile-label">{region.display_name}</span>
    <span class="tile-value">{`${region.sessions} / ${region.capacity}`}</span>
    <span class="tile-note">
      {`${region.instances.bound} of relays, ${region.instances.warm_ready} warm, ${region.instances.leftover} to be destroyed`}
      {region.drained_at === null ? '' : ', drained'}
    </span>
  </li>
)

const durationSince = (at: string): string => formatDuration((Date.now() - Date.parse(at)) / 1000)

/** How long it has existed, or did exist. */
function ageText({ created_at: created, gone_at: gone }: Instance): string {
  if (gone === null) return durationSince(created)
  return `${formatDuration((Date.parse(gone) - Date.parse(created)) / 1000)}, gone ${formatAge(new Date(gone), new Date())}`
}

const unownedText = ({ unowned_since: since, gone_at: gone }: Instance): string =>
  since === null || gone !== null ? '–' : durationSince(since)

const columns: readonly Column<Instance>[] = [
  {
    heading: 'Instance',
    cell: ({ instance_id: id, provider_id: providerId }) => (
      <>
        <Identifier value={id} />
        {providerId === null || providerId === id ? null : <Identifier value={providerId} />}
      </>
    ),
  },
  { heading: 'Use', cell: (instance) => <InstanceUse instance={instance} /> },
  { heading: 'Region', cell: ({ region }) => region },
  { heading: 'Provider', cell: ({ provider }) => provider ?? '–' },
  { heading: 'Zone', cell: ({ zone }) => zone },
  { heading: 'Session', cell: (instance) => <SessionLink id={instance.session_id} /> },
  { heading: 'Account', cell: (instance) => (instance.user_id === null ? '–' : <UserLink of={instance} />) },
  { heading: 'Age', cell: ageText },
  { heading: 'Unowned for', cell: unownedText },
  {
    heading: 'Last report',
    cell: (instance) => (instance.last_report_at === null ? '–' : <TimeAgo at={instance.last_report_at} />),
  },
  { heading: 'Image', cell: ({ image }) => image ?? '–' },
]
