/** Records the histories that `warm-instances-history.test.ts` replays: `npm run histories`. */
import { beforeAll, test } from 'vitest'
import { type RelayProvider, RelayProviderError } from '../../providers/relay/provider.ts'
import * as messages from '../../workflows/messages.ts'
import { recordHistory } from '../support/histories.ts'
import { eventually, startService, type TestService } from '../support/relays.ts'

let service: TestService
let create: RelayProvider['create'] | undefined

const names = ['refilled', 'provider-failed', 'drained'] as const
type Name = (typeof names)[number]

beforeAll(async () => {
  service = await startService({
    variables: {
      SVC_REGIONS: JSON.stringify(
        names.map((region) => ({ region, display_name: region, provider: 'local', capacity: 4, warm: 1 })),
      ),
    },
    around: (real) => ({
      ...real,
      create: (spec, signal) => (spec.region === 'provider-failed' && create ? create : real.create)(spec, signal),
    }),
  })
  create = () => Promise.reject(new RelayProviderError('busy', 'retry'))
})

const untilReady = (region: string) =>
  eventually(
    async () =>
      (
        await service.api.sql`
          select from instances where region = ${region} and is_warm and session_id is null and last_report_at is not null
            and retired_at is null and gone_at is null`
      ).count,
    (ready) => ready === 1,
  )

const paths: Record<Name, () => Promise<unknown>> = {
  refilled: async () => {
    await untilReady('refilled')
    const user = await service.user()
    await user.start({ region: 'refilled' })
    await untilReady('refilled')
  },
  'provider-failed': async () => {
    const { sql } = service.api
    await eventually(
      async () => (await sql`select from instances where region = 'provider-failed' and retired_at is not null`).count,
      (failed) => failed > 0,
    )
    create = undefined
    await untilReady('provider-failed')
  },
  drained: async () => {
    await untilReady('drained')
    await service.api.sql`insert into regions (region, drained_at) values ('drained', now())`
    await eventually(
      async () => (await service.api.sql`select from instances where region = 'drained' and gone_at is null`).count,
      (existing) => existing === 0,
    )
  },
}

test.for(names)('%s', async (name) => {
  await paths[name]()
  await recordHistory(messages.warmInstancesWorkflowId(name), `warm-instances/${name}`)
})
