/**
 * A server of moto, which implements the API of EC2 in memory. Needs `moto_server` on the PATH; see
 * test/system/requirements.ts.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { EC2, Instance } from '@aws-sdk/client-ec2'
import { findFreePort } from './ports.ts'

/** An image, the subnets and a security group of the account, as the settings of a region name them. */
export async function awsNetworkOf(account: EC2) {
  const { Images: [image] = [] } = await account.describeImages({ Owners: ['amazon'] })
  const { Subnets = [] } = await account.describeSubnets()
  const { SecurityGroups: [group] = [] } = await account.describeSecurityGroups()
  return {
    image_id: image?.ImageId ?? '',
    subnet_ids: Subnets.map(({ SubnetId = '' }) => SubnetId),
    security_group_ids: [group?.GroupId ?? ''],
  }
}

/** The user data that an instance was launched with. */
export async function userDataOf(account: EC2, { InstanceId = '' }: Instance): Promise<string> {
  const { UserData } = await account.describeInstanceAttribute({ InstanceId, Attribute: 'userData' })
  return Buffer.from(UserData?.Value ?? '', 'base64').toString()
}

const readyMillisMax = 30_000

export interface Moto {
  readonly url: string
  /** From now on requests need the credentials of a user that exists and may do what it requests. */
  requireAuthorization(): Promise<void>
  /** Accepts any credentials again. */
  acceptAll(): Promise<void>
  close(): Promise<void>
}

export async function startMoto(): Promise<Moto> {
  const port = await findFreePort()
  const child = spawn('moto_server', ['-H', '127.0.0.1', '-p', String(port)], { stdio: 'ignore' })
  const failed = once(child, 'error').then(([error]) => Promise.reject(error))
  const exited = once(child, 'exit')
  failed.catch(() => undefined)
  const url = `http://127.0.0.1:${port}`
  await Promise.race([waitUntilReady(url), failed])
  const setUncheckedRequests = async (count: string) => {
    await fetch(`${url}/moto-api/reset-auth`, { method: 'POST', body: count })
  }
  return {
    url,
    requireAuthorization: () => setUncheckedRequests('0'),
    acceptAll: () => setUncheckedRequests('inf'),
    async close() {
      child.kill('SIGKILL')
      await exited
    },
  }
}

async function waitUntilReady(url: string): Promise<void> {
  const until = Date.now() + readyMillisMax
  for (;;) {
    const reply = await fetch(`${url}/moto-api/data.json`).catch(() => undefined)
    if (reply?.ok) return
    if (Date.now() > until) throw new Error(`moto_server did not answer within ${readyMillisMax} ms`)
    await sleep(100)
  }
}
