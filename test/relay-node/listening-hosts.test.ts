/** The addresses that a relay binds, with and without IPv6 on its machine. */
import { expect, test } from 'vitest'
import { chooseListeningHosts } from '../../relay-node/listening-hosts.ts'

async function givenHosts(host: string, ipv6Problem?: string | null) {
  const logged: string[] = []
  const log = (level: string, message: string, fields?: object) =>
    void logged.push(`${level} ${message} ${JSON.stringify(fields)}`)
  const find = ipv6Problem === undefined ? [] : [async () => ipv6Problem]
  return { hosts: await chooseListeningHosts(host, log, ...find), logged }
}

test.each(['0.0.0.0', '::'])('%s stands for all addresses of both families', async (host) => {
  expect(await givenHosts(host)).toEqual({ hosts: ['0.0.0.0', '::'], logged: [] })
})

test.each(['0.0.0.0', '::'])('without IPv6 %s stands for those of IPv4, and the log says so once', async (host) => {
  expect(await givenHosts(host, 'EAFNOSUPPORT')).toEqual({
    hosts: ['0.0.0.0'],
    logged: ['info this machine has no IPv6: the relay can be reached over IPv4 only {"reason":"EAFNOSUPPORT"}'],
  })
})

test.each([
  ['127.0.0.1', '127.0.0.1'],
  ['2001:db8::7', '2001:db8::7'],
  ['::ffff:198.51.100.7', '198.51.100.7'],
])('%s stands for itself, whether there is IPv6 or not', async (host, bound) => {
  expect(await givenHosts(host, 'EAFNOSUPPORT')).toEqual({ hosts: [bound], logged: [] })
})
