/** The regions with their relays and instances. A drained region takes no new relays. */
import { expectSuccess } from '../../client/api-error.ts'
import type { Reply } from '../../client/reply.ts'
import type { PageResult, Visit } from '../page.ts'
import { DateTime } from '../time-text.tsx'
import { ActForm } from './act-form.tsx'
import { createActs, type Outcome, OutcomeMessages } from './acts.tsx'
import { Facts } from './facts.tsx'

type Region = Reply<'get', '/admin/regions'>['regions'][number]

const { show, act } = createActs({
  pathOf: () => '/operator/regions',
  notices: {
    drain: 'The region is drained: it takes no new relays, and its live relays run on.',
    resume: 'The region takes new relays again.',
  },
  page: regionsPage,
})

export { show }

const sendAs =
  (name: 'drain' | 'resume') =>
  ({ operatorApi, params: { region = '' } }: Visit, _: unknown, reason: string) =>
    operatorApi.POST(`/api/v1/admin/regions/{region}/${name}`, { params: { path: { region } }, body: { reason } })

export const drain = act('drain', sendAs('drain'))
export const resume = act('resume', sendAs('resume'))

async function regionsPage({ operatorApi }: Visit, outcome: Outcome): Promise<PageResult> {
  const { regions } = expectSuccess(await operatorApi.GET('/api/v1/admin/regions'))
  const page = <RegionsPage regions={regions} outcome={outcome} />
  return { name: 'operator-regions', title: 'Regions', console: 'regions', status: outcome.status ?? 200, page }
}

interface RegionsPageProps {
  readonly regions: readonly Region[]
  readonly outcome: Outcome
}

const RegionsPage = ({ regions, outcome }: RegionsPageProps) => (
  <>
    <div class="page-head">
      <h1>Regions</h1>
    </div>
    <OutcomeMessages outcome={outcome} />
    <div class="grid-2" data-refreshes="regions">
      {regions.map((region) => (
        <RegionCard key={region.region} region={region} />
      ))}
    </div>
  </>
)

const RegionCard = ({ region }: { readonly region: Region }) => (
  <section class="card" data-region={region.region} data-drained={region.drained_at === null ? 'false' : 'true'}>
    <div class="row apart">
      <h2>{region.display_name}</h2>
      <span class={`badge ${region.drained_at === null ? 'good' : 'warn'}`}>
        {region.drained_at === null ? 'In use' : 'Drained'}
      </span>
    </div>
    <Facts
      values={{
        Name: <code>{region.region}</code>,
        Provider: region.provider,
        'Live relays': `${region.sessions} of ${region.capacity}`,
        Instances: `${region.instances.bound} of relays, ${region.instances.warm_ready} warm and ready, ${region.instances.warm_booting} warm and starting, ${region.instances.leftover} to be destroyed`,
        'Warm instances to keep': region.warm,
        Image: `${region.image.image_id}, version ${region.image.version}`,
        'Drained since': region.drained_at === null ? null : <DateTime at={region.drained_at} />,
      }}
    />
    <RegionAct region={region} />
  </section>
)

const RegionAct = ({ region: { region, drained_at } }: { readonly region: Region }) =>
  drained_at === null ? (
    <ActForm
      id={`drain-${region}`}
      action={`/operator/regions/${region}/drain`}
      label="Drain"
      explanation="The region takes no new relays. Its live relays run on."
      isDangerous
    />
  ) : (
    <ActForm
      id={`resume-${region}`}
      action={`/operator/regions/${region}/resume`}
      label="Resume"
      explanation="The region takes new relays again."
    />
  )
