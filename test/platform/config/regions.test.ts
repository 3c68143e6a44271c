/** The regions in SVC_REGIONS, and the problems that it reports. */
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { relayVersion } from '../../../domain/relay/version.ts'
import { ConfigError, readVariables } from '../../../platform/config/environment.ts'
import { defaultRegions, imageKey, regions } from '../../../platform/config/regions.ts'

const Variables = z.object({ SVC_REGIONS: z.string().default(defaultRegions).pipe(regions) })

const read = (text: string | undefined) => readVariables(Variables, { SVC_REGIONS: text }).SVC_REGIONS
const readAll = (...all: readonly unknown[]) => read(JSON.stringify(all))

function problemsOf(...all: readonly unknown[]): readonly string[] {
  try {
    readAll(...all)
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
  return []
}

const local = { region: 'local', display_name: 'This machine', provider: 'local' }
const aws = {
  region: 'eu-central-1',
  image_id: 'ami-0123456789abcdef0',
  instance_type: 't4g.small',
  subnet_ids: ['subnet-0a', 'subnet-0b'],
  security_group_ids: ['sg-0a'],
}
const onAws = { region: 'eu', display_name: 'Europe', provider: 'aws', aws }
const hetzner = { location: 'fsn1', server_type: 'cax11', image: 'relay-7' }
const onHetzner = { region: 'de', display_name: 'Germany', provider: 'hetzner', hetzner }

describe('regions', () => {
  test('are one region on this machine by default', () => {
    expect(read(undefined)).toEqual([
      {
        ...local,
        default: true,
        capacity: 50,
        warm: 0,
        stable_address: false,
        host: '127.0.0.1',
        image: { image_id: 'relay-node', version: relayVersion, released_at: expect.stringMatching(/Z$/) },
      },
    ])
  })

  test('of all providers are read together, with the image that their provider uses', () => {
    const image = { image_id: 'named', version: '2.0.0', released_at: '2026-01-02T03:04:05+01:00' }
    const all = readAll({ ...local, image }, onAws, { ...onHetzner, warm: 2, ping_url: 'https://de.example.com/' })
    expect(all.map(({ provider, image: { image_id } }) => [provider, image_id])).toEqual([
      ['local', 'named'],
      ['aws', aws.image_id],
      ['hetzner', 'relay-7'],
    ])
    expect(all[2]).toMatchObject({ warm: 2, capacity: 50, ping_url: 'https://de.example.com/', hetzner })
  })

  test('of this machine may bind all addresses, and give another address or a name to users', () => {
    for (const host of ['0.0.0.0', '::', '10.0.0.7', '::1'])
      for (const public_host of ['203.0.113.9', '2001:db8::9', 'relay.example.com', 'relay'])
        expect(readAll({ ...local, host, public_host })[0]).toMatchObject({ host, public_host })
  })

  test('have an image key that changes with the image and with its version', () => {
    const [first, second] = readAll(onAws, { ...onHetzner, image: { ...imageOf('relay-7'), version: '9' } })
    expect(first && imageKey(first)).toBe(`${aws.image_id}@${relayVersion}`)
    expect(second && imageKey(second)).toBe('relay-7@9')
  })
})

const imageOf = (image_id: string) => ({ image_id, version: '1', released_at: '2026-01-02T03:04:05Z' })

describe('a problem names the region and the place', () => {
  test.each<[string, unknown[]]>([
    ['SVC_REGIONS[1].region is missing', [local, { display_name: 'Europe', provider: 'local' }]],
    ['SVC_REGIONS[0].region is not 1 to 32 lower-case letters', [{ ...local, region: 'EU' }]],
    ['SVC_REGIONS[0].region is reserved', [{ ...local, region: 'auto' }]],
    ['SVC_REGIONS[0].provider is not valid', [{ ...local, provider: 'gcp' }]],
    ['SVC_REGIONS[0].capacity is not valid', [{ ...local, capacity: 1.5 }]],
    ['SVC_REGIONS[0].warm is more than the capacity', [{ ...local, capacity: 1, warm: 2 }]],
    ['SVC_REGIONS[0].ping_url is not valid', [{ ...local, ping_url: 'ftp://example.com' }]],
    ['SVC_REGIONS[0].image.released_at is not valid', [{ ...local, image: { ...imageOf('a'), released_at: 'today' } }]],
    ['SVC_REGIONS[0].public_host belongs to "provider":"local"', [{ ...onAws, public_host: 'relay.example.com' }]],
    ['SVC_REGIONS[0].host is no IP address, and relays bind one: set host', [{ ...local, host: 'relay.example.com' }]],
    ['SVC_REGIONS[0].host is no IP address', [{ ...local, host: 'localhost' }]],
    ['SVC_REGIONS[0].host is no IP address', [{ ...local, host: '' }]],
    ['SVC_REGIONS[0].host stands for all addresses, which nobody can reach', [{ ...local, host: '0.0.0.0' }]],
    ['SVC_REGIONS[0].host stands for all addresses', [{ ...local, host: '::' }]],
    ['SVC_REGIONS[0].host stands for all addresses', [{ ...local, host: '0:0:0:0:0:0:0:0' }]],
    ['SVC_REGIONS[0].public_host is neither', [{ ...local, public_host: '0.0.0.0' }]],
    ['SVC_REGIONS[0].public_host is neither', [{ ...local, public_host: '203.0.113' }]],
    ['SVC_REGIONS[0].public_host is neither', [{ ...local, public_host: 'https://relay.example.com' }]],
    ['SVC_REGIONS[0].public_host is neither', [{ ...local, public_host: 'relay.example.com:5000' }]],
    ['SVC_REGIONS[0].host belongs to "provider":"local"', [{ ...onAws, host: '10.0.0.1' }]],
    ['SVC_REGIONS[0].aws is required with "provider":"aws"', [{ ...onAws, aws: undefined }]],
    [
      'SVC_REGIONS[0].stable_address belongs to "provider":"aws" and "hetzner": relays on one machine keep its address',
      [{ ...local, stable_address: true }],
    ],
    ['SVC_REGIONS[1].aws belongs to "provider":"aws"', [local, { ...onHetzner, aws }]],
    ['SVC_REGIONS[0].hetzner is required with "provider":"hetzner"', [{ ...onHetzner, hetzner: undefined }]],
    ['SVC_REGIONS[1].aws.subnet_ids is missing', [local, { ...onAws, aws: { ...aws, subnet_ids: undefined } }]],
    ['SVC_REGIONS[0].aws.subnet_ids is not valid', [{ ...onAws, aws: { ...aws, subnet_ids: [] } }]],
    [
      'SVC_REGIONS[0].aws.subnet_ids[1] is not a subnet id',
      [{ ...onAws, aws: { ...aws, subnet_ids: ['subnet-1', 'x'] } }],
    ],
    ['SVC_REGIONS[0].aws.instance_type is not an instance type', [{ ...onAws, aws: { ...aws, instance_type: 'big' } }]],
    ['SVC_REGIONS[0].hetzner.location is missing', [{ ...onHetzner, hetzner: { ...hetzner, location: undefined } }]],
    ['SVC_REGIONS[1] is not valid', [local, 'eu']],
    ['SVC_REGIONS has no region', []],
    ['SVC_REGIONS has two regions with the same name', [local, local]],
    [
      'SVC_REGIONS has more than one default region',
      [
        { ...local, default: true },
        { ...onAws, default: true },
      ],
    ],
  ])('%s', (expected, all) => {
    const problems = problemsOf(...all)
    expect(problems).toHaveLength(1)
    expect(problems[0]?.slice(0, expected.length)).toBe(expected)
  })

  test('and the unknown keys, at every level', () => {
    expect(problemsOf({ ...local, capcity: 5, zone: 'a' })).toEqual(['SVC_REGIONS[0] has unknown keys: capcity, zone'])
    expect(problemsOf(local, { ...onAws, aws: { ...aws, subnet: 'subnet-1' } })).toEqual([
      'SVC_REGIONS[1].aws has unknown keys: subnet',
    ])
  })

  test('for each of several problems', () => {
    expect(
      problemsOf({ ...local, region: 'A' }, { ...onHetzner, image: {} }).map((line) => line.split(' ')[0]),
    ).toEqual([
      'SVC_REGIONS[0].region',
      'SVC_REGIONS[1].image.image_id',
      'SVC_REGIONS[1].image.version',
      'SVC_REGIONS[1].image.released_at',
    ])
  })
})

test('text that is not JSON is reported as such', () => {
  expect(() => read('[{"region":')).toThrow('SVC_REGIONS is not JSON')
})
