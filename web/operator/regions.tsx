/** The regions with their relays and instances. A drained region takes no new relays. */
import { expectSuccess } from '../../client/api-error.ts'
import type { Reply } from '../../client/reply.ts'
import type { PageResult, PageRoute, Visit } from '../page.ts'
import { type Notice, NoticeMessage, type Problem, ProblemMessage } from '../pages/messages.tsx'
import { DateTime } from '../time-text.tsx'
import { ActForm } from './act-form.tsx'
import { submitAct } from './submit-act.ts'

type Region = Reply<'get', '/admin/regions'>['regions'][number]

const path = '/operator/regions'

const notices: Readonly<Record<string, string>> = {
  drain: 'The region is drained: it takes no new relays, and its live relays run on.',
  resume: 'The region takes new relays again.',
}

export const show: PageRoute = {
  method: 'GET',
  path,
  caller: 'operator',
  handle: (visit) => regionsPage(visit, { done: visit.query.get('done') ?? '' }),
}

const actOf = (act: 'drain' | 'resume'): PageRoute => ({
  method: 'POST',
  path: `${path}/:region/${act}`,
  caller: 'operator',
  returnTo: path,
  handle: (visit) =>
    submitAct(visit, {
      send: (reason) =>
        visit.operatorApi.POST(`/api/v1/admin/regions/{region}/${act}`, {
          params: { path: { region: visit.params.region ?? '' } },
          body: { reason },
        }),
      redirectTo: `${path}?done=${act}`,
      showProblem: (problem, status) => regionsPage(visit, { problem, status }),
    }),
})

export const drain = actOf('drain')
export const resume = actOf('resume')

interface Outcome {
  readonly done?: string
  readonly problem?: Problem
  readonly status?: number
}

async function regionsPage({ operatorApi }: Visit, outcome: Outcome): Promise<PageResult> {
  const { regions } = expectSuccess(await operatorApi.GET('/api/v1/admin/regions'))
  const { done = '', problem, status = 200 } = outcome
  const text = Object.hasOwn(notices, done) ? notices[done] : undefined
  const notice = text === undefined ? undefined : { code: done, text }
  const page = <RegionsPage regions={regions} notice={notice} problem={problem} />
  return { name: 'operator-regions', title: 'Regions', console: 'regions', status, page }
}

interface RegionsPageProps {
  readonly regions: readonly Region[]
  readonly notice: Notice | undefined
  readonly problem: Problem | undefined
}

const RegionsPage = ({ regions, notice, problem }: RegionsPageProps) => (
  <>
    <div class="page-head">
      <h1>Regions</h1>
    </div>
    <NoticeMessage notice={notice} />
    <ProblemMessage problem={problem} />
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
    <dl class="facts">
      <dt>Name</dt>
      <dd>
        <code>{region.region}</code>
      </dd>
      <dt>Provider</dt>
      <dd>{region.provider}</dd>
      <dt>Live relays</dt>
      <dd>{`${region.sessions} of ${region.capacity}`}</dd>
      <dt>Instances</dt>
      <dd>
        {`${region.instances.bound} of relays, ${region.instances.warm_ready} warm and ready, `}
        {`${region.instances.warm_booting} warm and starting, ${region.instances.leftover} to be destroyed`}
      </dd>
      <dt>Warm instances to keep</dt>
      <dd>{region.warm}</dd>
      <dt>Image</dt>
      <dd>{`${region.image.image_id}, version ${region.image.version}`}</dd>
      {region.drained_at === null ? null : (
        <>
          <dt>Drained since</dt>
          <dd>
            <DateTime at={region.drained_at} />
          </dd>
        </>
      )}
    </dl>
    <RegionAct region={region} />
  </section>
)

const RegionAct = ({ region: { region, drained_at } }: { readonly region: Region }) =>
  drained_at === null ? (
    <ActForm
      id={`drain-${region}`}
      action={`${path}/${region}/drain`}
      label="Drain"
      explanation="The region takes no new relays. Its live relays run on."
      isDangerous
    />
  ) : (
    <ActForm
      id={`resume-${region}`}
      action={`${path}/${region}/resume`}
      label="Resume"
      explanation="The region takes new relays again."
    />
  )
