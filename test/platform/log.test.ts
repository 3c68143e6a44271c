/** The lines of the log, without secrets. */
import { describe, expect, test } from 'vitest'
import { createLog } from '../../platform/log.ts'

function logTo(level = 'debug') {
  const lines: string[] = []
  return { lines, log: createLog('test', level, { write: (line) => void lines.push(line) }) }
}

test('a line is one JSON object with a time, the name of its level and the name of the program', () => {
  const { lines, log } = logTo()
  log.child({ request_id: 'r' }).info({ port: 8080 }, 'listens\nhere')
  expect(lines).toHaveLength(1)
  expect(lines[0]).toMatch(/^\{.*\}\n$/)
  expect(JSON.parse(lines[0] ?? '')).toEqual({
    level: 'info',
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    name: 'test',
    pid: process.pid,
    request_id: 'r',
    port: 8080,
    msg: 'listens\nhere',
  })
})

test('entries below the level are not logged', () => {
  const { lines, log } = logTo('warn')
  log.info('not important')
  log.warn('important')
  expect(lines).toHaveLength(1)
})

describe('a secret', () => {
  const names = [
    'password',
    'refresh_token',
    'cp_access_jwt',
    'poll_token',
    'merge_token',
    'binding',
    'access_token',
    'id_token',
    'client_secret',
    'code_verifier',
    'pair_token',
    'relay_ws_token',
    'stream_token',
    'token',
    'authorization',
    'cookie',
    'x-relay-auth',
    'x-pair-token',
  ]

  test.each(names)('named %s is redacted at every depth that is logged', (name) => {
    const { lines, log } = logTo()
    log.info({ [name]: 'hidden', safe: 1 })
    log.info({ body: { [name]: 'hidden', safe: 1 } })
    log.info({ request: { headers: { [name]: 'hidden', safe: 1 } } })
    log.info({ list: [{ [name]: 'hidden', safe: 1 }] })
    log.child({ [name]: 'hidden', safe: 1 }).info('of a child')
    expect(lines.join()).not.toContain('hidden')
    expect(lines.every((line) => line.includes('[redacted]') && line.includes('"safe":1'))).toBe(true)
  })

  test('in the fields of an error is redacted too', () => {
    const { lines, log } = logTo()
    log.error({ err: Object.assign(new Error('no'), { password: 'hidden', config: { authorization: 'hidden' } }) })
    expect(lines.join()).not.toContain('hidden')
    expect(lines.join()).toContain('"message":"no"')
  })
})
