/** The provider that each region gets from the configuration. */
import { expect, test } from 'vitest'
import { createRelayProviders } from '../../../activities/fleet/relay-providers.ts'
import { readConfig } from '../../../platform/config/config.ts'
import { createLog } from '../../../platform/log.ts'
import { relayBundle } from '../../../providers/relay/relay-bundle.ts'
import { testEnvironment } from '../../support/environment.ts'
import { givenHetzner, never, relaySpec } from '../../support/hetzner.ts'

const aws = {
  region: 'eu-central-1',
  image_id: 'ami-0123456789abcdef0',
  instance_type: 't4g.small',
  subnet_ids: ['subnet-0a', 'subnet-0b'],
  security_group_ids: ['sg-0a'],
}

test('each region has the provider of its kind, and the user data of its instances names the bundle of this api', async () => {
  const api = await givenHetzner()
  const regions = [
    { region: 'here', display_name: 'Here', provider: 'local' },
    { region: 'there', display_name: 'There', provider: 'local' },
    { region: 'amazon', display_name: 'Amazon', provider: 'aws', aws },
    {
      region: 'eu',
      display_name: 'Europe',
      provider: 'hetzner',
      hetzner: { location: 'fsn1', server_type: 'cax11', image: 'debian-13' },
    },
  ]
  const config = readConfig(
    testEnvironment({
      SVC_REGIONS: JSON.stringify(regions),
      SVC_API_URL: 'https://api.example.com',
      SVC_HETZNER_API_URL: api.apiUrl,
      SVC_HETZNER_TOKEN: api.token,
      SVC_FLEET_NAME: 'staging',
    }),
  )

  const providers = await createRelayProviders(config, createLog('worker', 'silent'))

  expect([...providers.keys()]).toEqual(['here', 'there', 'amazon', 'eu'])
  expect(providers.get('amazon')?.zones).toBe(2)
  await providers.get('eu')?.create(relaySpec(), never())
  const { fileName, sha256 } = await relayBundle()
  const [server] = api.project.servers()
  expect(server?.labels).toMatchObject({ 'svc-region': 'eu', 'svc-fleet': 'staging' })
  expect(server?.userData).toContain(`https://api.example.com/relay-node/${fileName}", "${sha256}"`)
})
