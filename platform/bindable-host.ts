/** Whether programs of this machine can bind an address, as relays do. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { isIPv6 } from 'node:net'
import type { RegionConfig } from './config/regions.ts'

/** What is wrong with the address that the relays of a region bind, and what to do; null for nothing and in a cloud. */
export async function findHostProblem({
  region,
  provider,
  host,
}: Pick<RegionConfig, 'region' | 'provider' | 'host'>): Promise<string | null> {
  const code = provider === 'local' ? await findBindError(host) : null
  if (code === null) return null
  return `SVC_REGIONS, region ${region}: host ${host} is no address of this machine (${code}): set host to one of its addresses or to 0.0.0.0, and public_host to the address or name that users reach`
}

/** The problems of all regions. */
export const findHostProblems = async (regions: readonly RegionConfig[]): Promise<string[]> =>
  (await Promise.all(regions.map(findHostProblem))).filter((problem) => problem !== null)

/** @returns the code of the error that binding an address of this machine has; null for none. */
export async function findBindError(host: string): Promise<string | null> {
  const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4')
  try {
    const listening = once(socket, 'listening')
    socket.bind(0, host)
    await listening
    return null
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'an unknown error'
  } finally {
    socket.close()
  }
}
