/** The ids of instances and the secrets that are derived from them. */
import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import {
  createInstanceId,
  createRelaySecretVerifier,
  instanceSecret,
  verifyRelaySecret,
} from '../../../providers/relay/instance-secrets.ts'

const [current, previous, foreign] = [1, 2, 3].map(() => randomBytes(48).toString('base64')) as [string, string, string]
const masters = [current, previous]
const id = createInstanceId('aws')

test('the id of an instance names its provider, and no two are equal', () => {
  const ids = Array.from({ length: 1000 }, () => createInstanceId('hetzner'))
  expect(ids.filter((instanceId) => !/^hetzner-[0-9a-f]{16}$/.test(instanceId))).toEqual([])
  expect(new Set(ids).size).toBe(ids.length)
})

test('the secret of an instance contains its id and differs per instance and master secret', () => {
  const secrets = [instanceSecret(current, id), instanceSecret(previous, id), instanceSecret(current, `${id}0`)]
  expect(new Set(secrets).size).toBe(3)
  expect(instanceSecret(current, id)).toMatch(/^aws-[0-9a-f]{16}\.[0-9a-f]{64}$/)
  expect(instanceSecret(current, id)).toBe(instanceSecret(current, id))
})

describe.each([
  ['verified each time', (presented: string) => verifyRelaySecret(presented, masters)],
  ['remembered', createRelaySecretVerifier(masters)],
])('a secret that is %s', (_, verify) => {
  test('belongs to the holder of a master secret, the current or the previous one', () => {
    for (const master of [...masters, ...masters]) expect(verify(master)).toBe('master')
  })

  test('belongs to its instance when it is derived from the current or the previous master secret', () => {
    for (const master of [...masters, ...masters])
      for (const instanceId of [id, 'a.b-c_d', 'x'.repeat(64)])
        expect(verify(instanceSecret(master, instanceId))).toEqual({ instanceId })
  })

  test.each([
    ['empty', ''],
    ['only a dot', '.'],
    ['an id without a signature', `${id}.`],
    ['a signature without an id', instanceSecret(current, '')],
    ['of another master secret', instanceSecret(foreign, id)],
    ['another master secret', foreign],
    ['of another instance', instanceSecret(current, `${id}0`).replace(`${id}0`, id)],
    ['in upper case', instanceSecret(current, id).toUpperCase()],
    ['followed by more text', `${instanceSecret(current, id)}0`],
    ['too short', instanceSecret(current, id).slice(0, -1)],
    ['two master secrets', masters.join(',')],
    ['of an id that is too long', instanceSecret(current, 'x'.repeat(65))],
    ['of an id with other characters', instanceSecret(current, 'a b')],
  ])('is refused if it is %s', (_name, presented) => {
    expect([verify(presented), verify(presented)]).toEqual([undefined, undefined])
  })
})

test('the secrets of more instances than are remembered are all accepted', () => {
  const verify = createRelaySecretVerifier(masters)
  const ids = Array.from({ length: 10_100 }, (_, index) => `aws-${index}`)
  for (const _round of [1, 2])
    for (const instanceId of ids) {
      const caller = verify(instanceSecret(current, instanceId))
      if (caller === 'master' || caller?.instanceId !== instanceId) throw new Error(`${instanceId} was not accepted`)
    }
  expect(verify(instanceSecret(foreign, 'aws-1'))).toBeUndefined()
})
